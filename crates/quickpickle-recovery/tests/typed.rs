//! Objects in, objects out: serialisers, tags that keep them apart, and stores that hold records of several.

use quickpickle_recovery::spark::{ApplicationInfo, DriverInfo, WorkerInfo};
use quickpickle_recovery::{
    CodecId, Compact, Compression, Config, ErrorKind, Pickle, Record, Recovery, Serializer,
};

fn engine(compression: Compression) -> (tempfile::TempDir, Config) {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        compression,
        ..Config::log(directory.path())
    };
    (directory, config)
}

fn all_kinds_come_back<S: Serializer + Copy>(serializer: S) {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let (_directory, config) = engine(compression);
        let recovery = Recovery::new(config.open().unwrap(), serializer);
        for i in 0..40 {
            recovery
                .persist(&format!("worker_{i:02}"), &WorkerInfo::example(i))
                .unwrap();
            recovery
                .persist(&format!("app_{i:02}"), &ApplicationInfo::example(i))
                .unwrap();
            recovery
                .persist(&format!("driver_{i:02}"), &DriverInfo::example(i))
                .unwrap();
        }
        recovery.unpersist("driver_07").unwrap();
        recovery.close().unwrap();
        drop(recovery);
        let recovery = Recovery::new(config.open().unwrap(), serializer);
        let workers: Vec<(String, WorkerInfo)> = recovery.read("worker_").unwrap();
        assert_eq!(workers.len(), 40);
        assert!(
            workers
                .iter()
                .zip(0..)
                .all(|((name, worker), i)| *name == format!("worker_{i:02}")
                    && *worker == WorkerInfo::example(i))
        );
        assert_eq!(
            recovery.get::<ApplicationInfo>("app_03").unwrap(),
            Some(ApplicationInfo::example(3))
        );
        assert_eq!(recovery.read::<DriverInfo>("driver_").unwrap().len(), 39);
        assert_eq!(recovery.get::<DriverInfo>("driver_07").unwrap(), None);
    }
}

#[test]
fn all_kinds_come_back_through_the_compact_codec() {
    all_kinds_come_back(Compact);
}

#[test]
fn all_kinds_come_back_through_pickle() {
    all_kinds_come_back(Pickle);
}

#[test]
fn another_serialiser_reads_what_the_one_before_wrote() {
    let (_directory, config) = engine(Compression::None);
    Recovery::new(config.open().unwrap(), Pickle)
        .persist("worker_1", &WorkerInfo::example(1))
        .unwrap();
    let recovery = Recovery::new(config.open().unwrap(), Compact);
    recovery
        .persist("worker_2", &WorkerInfo::example(2))
        .unwrap();
    let tags: Vec<CodecId> = recovery
        .engine()
        .read("")
        .unwrap()
        .iter()
        .map(|entry| entry.codec)
        .collect();
    assert_eq!(tags, [CodecId::PICKLE, CodecId::COMPACT]);
    let workers: Vec<(String, WorkerInfo)> = recovery.read("worker_").unwrap();
    assert_eq!(
        workers
            .into_iter()
            .map(|(_, worker)| worker)
            .collect::<Vec<_>>(),
        [WorkerInfo::example(1), WorkerInfo::example(2)]
    );
}

#[test]
fn a_tag_nobody_here_can_read_is_an_error_that_names_it() {
    let (_directory, config) = engine(Compression::None);
    let recovery = Recovery::new(config.open().unwrap(), Compact);
    recovery
        .engine()
        .persist_tagged("worker_1", CodecId::JAVA, b"\xac\xed\x00\x05")
        .unwrap();
    let error = recovery.read::<WorkerInfo>("").unwrap_err();
    assert_eq!(
        (error.kind(), error.place()),
        (ErrorKind::Codec, "worker_1")
    );
    assert!(error.to_string().contains("java"), "{error}");
}

#[test]
fn a_value_of_another_type_is_an_error_and_no_accident() {
    let (_directory, config) = engine(Compression::None);
    let recovery = Recovery::new(config.open().unwrap(), Compact);
    recovery.persist("x", &ApplicationInfo::example(1)).unwrap();
    let error = recovery.get::<DriverInfo>("x").unwrap_err();
    assert!(
        error.to_string().contains("type 2") && error.to_string().contains("type 3"),
        "{error}"
    );
}

#[test]
fn damaged_values_are_errors_in_both_codecs() {
    fn check<S: Serializer>(serializer: &S) {
        let mut bytes = Vec::new();
        serializer
            .serialize(&ApplicationInfo::example(5), &mut bytes)
            .unwrap();
        for len in 0..bytes.len() {
            assert!(
                serializer
                    .deserialize::<ApplicationInfo>(&bytes[..len])
                    .is_err(),
                "{len}"
            );
        }
        bytes.push(0);
        assert!(
            serializer.deserialize::<ApplicationInfo>(&bytes).is_err(),
            "trailing byte"
        );
    }
    check(&Compact);
    check(&Pickle);
}

#[test]
fn types_have_numbers_of_their_own() {
    assert_eq!(
        [
            WorkerInfo::TYPE_ID,
            ApplicationInfo::TYPE_ID,
            DriverInfo::TYPE_ID
        ],
        [1, 2, 3]
    );
}
