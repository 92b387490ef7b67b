//! Every module and name that payloads use for what rebuilds functions and classes.
//!
//! These are cloudpickle's, so that any receiver that has cloudpickle can load what is written here, and what any copy of
//! cloudpickle has written can be loaded here. A name that was written once is read for ever: nothing is ever taken off
//! these lists.

/// The package names under which cloudpickle is found: its own, and of copies that other packages carry.
const PACKAGES: [&str; 5] = [
    "cloudpickle",
    "pyspark.cloudpickle",
    "ray.cloudpickle",
    "joblib.externals.cloudpickle",
    "quickpickle.cloudpickle",
];

/// The modules of each package in which the names are found; `""` is the package itself. Payloads of older releases
/// name `cloudpickle_fast`.
const MODULES: [&str; 3] = ["", ".cloudpickle", ".cloudpickle_fast"];

/// Whether a module is cloudpickle, or a copy of it.
pub(crate) fn is_cloudpickle(module: &[u8]) -> bool {
    // Most modules are told apart by how they end.
    if !(module.ends_with(b"cloudpickle") || module.ends_with(b"cloudpickle_fast")) {
        return false;
    }
    PACKAGES.iter().any(|package| {
        module
            .strip_prefix(package.as_bytes())
            .is_some_and(|rest| MODULES.iter().any(|inner| inner.as_bytes() == rest))
    })
}

/// What rebuilds an object, by the name that payloads call it by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    /// A type of the `types` module.
    BuiltinType,
    /// A cell with something in it.
    MakeCell,
    /// A cell with nothing in it yet.
    MakeEmptyCell,
    /// A function, to which its state is given later.
    MakeFunction,
    /// Gives a function its state.
    FunctionSetstate,
    /// A class, to which its attributes are given later.
    MakeSkeletonClass,
    /// An enum with its members, to which its other attributes are given later.
    MakeSkeletonEnum,
    /// Gives a class its attributes.
    ClassSetstate,
    /// A type variable.
    MakeTypevar,
    /// A module, imported.
    Subimport,
    /// A module made at run time.
    DynamicSubimport,
    /// The items of a dict.
    MakeDictItems,
    /// The keys of a dict.
    MakeDictKeys,
    /// The values of a dict.
    MakeDictValues,
    /// What marks a dataclass's fields.
    DataclassFieldSentinel,
    /// A file that was opened for reading.
    FileReconstructor,
    /// The class that has an id.
    LookupClassOrTrack,
    /// The id that a class has.
    GetOrCreateTrackerId,
}

/// All of [`Name`], in its order, with the names in payloads and the parameters: how many must be given, and what they
/// are called.
pub(crate) const NAMES: [(Name, &str, usize, &[&str]); 18] = [
    (Name::BuiltinType, "_builtin_type", 1, &["name"]),
    (Name::MakeCell, "_make_cell", 0, &["value"]),
    (Name::MakeEmptyCell, "_make_empty_cell", 0, &[]),
    (
        Name::MakeFunction,
        "_make_function",
        5,
        &["code", "globals", "name", "argdefs", "closure"],
    ),
    (
        Name::FunctionSetstate,
        "_function_setstate",
        2,
        &["obj", "state"],
    ),
    (
        Name::MakeSkeletonClass,
        "_make_skeleton_class",
        6,
        &[
            "type_constructor",
            "name",
            "bases",
            "type_kwargs",
            "class_tracker_id",
            "extra",
        ],
    ),
    (
        Name::MakeSkeletonEnum,
        "_make_skeleton_enum",
        7,
        &[
            "bases",
            "name",
            "qualname",
            "members",
            "module",
            "class_tracker_id",
            "extra",
        ],
    ),
    (Name::ClassSetstate, "_class_setstate", 2, &["obj", "state"]),
    (
        Name::MakeTypevar,
        "_make_typevar",
        6,
        &[
            "name",
            "bound",
            "constraints",
            "covariant",
            "contravariant",
            "class_tracker_id",
        ],
    ),
    (Name::Subimport, "subimport", 1, &["name"]),
    (
        Name::DynamicSubimport,
        "dynamic_subimport",
        2,
        &["name", "vars"],
    ),
    (
        Name::MakeDictItems,
        "_make_dict_items",
        1,
        &["obj", "is_ordered"],
    ),
    (
        Name::MakeDictKeys,
        "_make_dict_keys",
        1,
        &["obj", "is_ordered"],
    ),
    (
        Name::MakeDictValues,
        "_make_dict_values",
        1,
        &["obj", "is_ordered"],
    ),
    (
        Name::DataclassFieldSentinel,
        "_get_dataclass_field_type_sentinel",
        1,
        &["name"],
    ),
    (
        Name::FileReconstructor,
        "_file_reconstructor",
        1,
        &["retval"],
    ),
    (
        Name::LookupClassOrTrack,
        "_lookup_class_or_track",
        2,
        &["class_tracker_id", "class_def"],
    ),
    (
        Name::GetOrCreateTrackerId,
        "_get_or_create_tracker_id",
        1,
        &["class_def"],
    ),
];
