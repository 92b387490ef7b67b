//! Reading: from the nodes of a pickle to whatever serde asks for.
//!
//! An object in several places is read once for each of them. Since a few bytes can describe a structure that is shared over and over,
//! the number of objects handed out is bounded by the size of the input, and depth is bounded too, which ends cycles.

use std::cell::Cell;

use ::serde::de::{self, DeserializeOwned, IntoDeserializer, Visitor};
use ::serde::forward_to_deserialize_any;

use super::Error;
use super::graph::{Graph, Id, Node};

/// Deepest nesting: serde walks types by recursion.
const DEPTH: u32 = 128;
/// Objects handed out for each byte of input at most. Sharing of large parts is rare in plain data.
const SHARING: u64 = 64;

/// The value of a pickle of plain data.
///
/// Fails if the pickle is malformed, names a class or calls something, nests deeper than 128 levels, or is not what `T` expects.
pub fn from_slice<T: DeserializeOwned>(pickle: &[u8]) -> Result<T, Error> {
    let graph = Graph::read(pickle)?;
    let budget = Cell::new(SHARING * (pickle.len() as u64 + 16));
    T::deserialize(Object {
        graph: &graph,
        budget: &budget,
        id: graph.root(),
        depth: DEPTH,
    })
}

/// One object on its way into a Rust value.
#[derive(Clone, Copy)]
struct Object<'g, 'a> {
    graph: &'g Graph<'a>,
    budget: &'g Cell<u64>,
    id: Id,
    depth: u32,
}

impl<'g, 'a> Object<'g, 'a> {
    fn node(&self) -> &'g Node<'a> {
        self.graph.node(self.id)
    }

    fn part(&self, id: Id) -> Self {
        Self { id, ..*self }
    }

    /// Accounts for one object, and for one level if it has parts.
    fn enter(&self) -> Result<Self, Error> {
        let left = self
            .budget
            .get()
            .checked_sub(1)
            .ok_or_else(|| Error::new("the pickle shares its objects too often"))?;
        self.budget.set(left);
        let depth = self
            .depth
            .checked_sub(1)
            .ok_or_else(|| Error::new("the pickle nests too deeply, or in a circle"))?;
        Ok(Self { depth, ..*self })
    }
}

/// An integer of more than eight bytes, as far as serde has numbers for it.
fn visit_long<'de, V: Visitor<'de>>(digits: &[u8], visitor: V) -> Result<V::Value, Error> {
    let negative = digits.last().is_some_and(|&top| top >= 0x80);
    let mut wide = [if negative { 0xff } else { 0 }; 17];
    if digits.len() > wide.len() {
        return Err(Error::new(format!(
            "an integer of {} bytes is too large",
            digits.len()
        )));
    }
    wide[..digits.len()].copy_from_slice(digits);
    let (low, top) = wide.split_at(16);
    let value = u128::from_le_bytes(low.try_into().unwrap_or_default());
    match (top[0], u64::try_from(value)) {
        (0, Ok(value)) => visitor.visit_u64(value),
        (0, Err(_)) => visitor.visit_u128(value),
        (0xff, _) if value >> 127 == 1 => visitor.visit_i128(value as i128),
        _ => Err(Error::new("an integer is too large")),
    }
}

impl<'de> de::Deserializer<'de> for Object<'_, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let object = self.enter()?;
        match object.node() {
            Node::None => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(*value),
            Node::Int(value) => visitor.visit_i64(*value),
            Node::Long(digits) => visit_long(digits, visitor),
            Node::Float(value) => visitor.visit_f64(*value),
            Node::Str(text) => visitor.visit_str(text),
            Node::Bytes(bytes) => visitor.visit_bytes(bytes),
            Node::Items(items) => {
                let mut access = Items {
                    object,
                    rest: items,
                };
                let value = visitor.visit_seq(&mut access)?;
                match access.rest.len() {
                    0 => Ok(value),
                    left => Err(Error::new(format!("{left} items more than expected"))),
                }
            }
            Node::Dict(pairs) => visitor.visit_map(Pairs {
                object,
                rest: pairs,
                value: None,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node() {
            Node::None => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let object = self.enter()?;
        match object.node() {
            Node::Str(variant) => visitor.visit_enum(variant.as_ref().into_deserializer()),
            Node::Dict(pairs) => match pairs[..] {
                [(variant, content)] => visitor.visit_enum(Variant {
                    variant: object.part(variant),
                    content: object.part(content),
                }),
                _ => Err(Error::new("an enum is a str or a dict of one variant")),
            },
            _ => Err(Error::new("an enum is a str or a dict of one variant")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct
        map struct identifier ignored_any
    }
}

struct Items<'g, 'a> {
    object: Object<'g, 'a>,
    rest: &'g [Id],
}

impl<'de> de::SeqAccess<'de> for Items<'_, '_> {
    type Error = Error;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some((&first, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        self.rest = rest;
        seed.deserialize(self.object.part(first)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Pairs<'g, 'a> {
    object: Object<'g, 'a>,
    rest: &'g [(Id, Id)],
    value: Option<Id>,
}

impl<'de> de::MapAccess<'de> for Pairs<'_, '_> {
    type Error = Error;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((&(key, value), rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        self.rest = rest;
        self.value = Some(value);
        seed.deserialize(self.object.part(key)).map(Some)
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let value = self
            .value
            .take()
            .ok_or_else(|| Error::new("a value was asked for before its key"))?;
        seed.deserialize(self.object.part(value))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Variant<'g, 'a> {
    variant: Object<'g, 'a>,
    content: Object<'g, 'a>,
}

impl<'de, 'g, 'a> de::EnumAccess<'de> for Variant<'g, 'a> {
    type Error = Error;
    type Variant = Object<'g, 'a>;

    fn variant_seed<V: de::DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Object<'g, 'a>), Error> {
        Ok((seed.deserialize(self.variant)?, self.content))
    }
}

impl<'de> de::VariantAccess<'de> for Object<'_, '_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.node() {
            Node::None => Ok(()),
            _ => Err(Error::new("a variant without content has some")),
        }
    }

    fn newtype_variant_seed<T: de::DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        de::Deserializer::deserialize_any(self, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        de::Deserializer::deserialize_any(self, visitor)
    }
}
