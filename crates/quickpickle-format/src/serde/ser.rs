//! Writing: serde's data model as the plainest Python objects, in protocol 4.
//!
//! None, bool, int, float, str, bytes, list, tuple and dict; structs and enum variants as dicts, unit variants as str. Only names of
//! fields go into the memo, since nothing else is ever referred to again.

use ::serde::{Serialize, ser};

use super::Error;
use crate::Writer;
use crate::opcode::byte;

const PROTOCOL: u8 = 4;

/// The pickle of a value.
///
/// Fails only where the value's own `Serialize` does.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    let mut buffer = Vec::new();
    append(value, &mut buffer)?;
    Ok(buffer)
}

/// Appends the pickle of a value to a buffer; on an error the buffer is as it was.
pub fn append<T: Serialize + ?Sized>(value: &T, buffer: &mut Vec<u8>) -> Result<(), Error> {
    let start = buffer.len();
    let mut serializer = Serializer {
        writer: Writer::new(std::mem::take(buffer), PROTOCOL),
        names: Vec::new(),
    };
    serializer.writer.begin();
    let written = value.serialize(&mut serializer);
    serializer.writer.end();
    *buffer = std::mem::take(serializer.writer.sink_mut());
    if written.is_err() {
        buffer.truncate(start);
    }
    written
}

struct Serializer {
    writer: Writer<Vec<u8>>,
    /// Names in the memo, in its order. Few, so that looking through them beats hashing.
    names: Vec<&'static str>,
}

impl Serializer {
    /// Begins a new frame where the current one has grown to its size.
    fn between_objects(&mut self) {
        if self.writer.frame_is_full() {
            self.writer.close_frame();
            self.writer.open_frame();
        }
    }

    fn name(&mut self, name: &'static str) {
        // The same literal is mostly at the same place; comparing that first spares most comparisons of text.
        let known = self
            .names
            .iter()
            .position(|known| std::ptr::eq(*known, name) || *known == name);
        match known {
            Some(index) => self.writer.get(index),
            None => {
                self.text(name);
                self.writer.put(self.names.len());
                self.names.push(name);
            }
        }
    }

    fn text(&mut self, text: &str) {
        let bypass = Writer::<Vec<u8>>::bypasses_frame(text.len());
        if bypass {
            self.writer.close_frame();
        }
        if text.len() <= 0xff {
            self.writer.short_unicode(text.as_bytes());
        } else {
            // Protocol 4 has a header for every length.
            let _ = self.writer.unicode_header(text.len());
            self.writer.raw(text.as_bytes());
        }
        if bypass {
            self.writer.open_frame();
        }
    }

    /// Little-endian two's complement, as short as it goes.
    fn long(&mut self, digits: &[u8]) {
        let mut len = digits.len();
        while len > 1 {
            let (top, next) = (digits[len - 1], digits[len - 2]);
            let redundant = (top == 0 && next < 0x80) || (top == 0xff && next >= 0x80);
            if !redundant {
                break;
            }
            len -= 1;
        }
        self.writer.long(&digits[..len]);
    }

    fn open_dict(&mut self) {
        self.writer.opcodes([byte::EMPTY_DICT, byte::MARK]);
    }

    /// A dict of one name, for the variants of enums; closed by SETITEM.
    fn open_variant(&mut self, variant: &'static str) {
        self.writer.opcode(byte::EMPTY_DICT);
        self.name(variant);
    }
}

impl<'s> ser::Serializer for &'s mut Serializer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Items<'s>;
    type SerializeTuple = Items<'s>;
    type SerializeTupleStruct = Items<'s>;
    type SerializeTupleVariant = Items<'s>;
    type SerializeMap = Items<'s>;
    type SerializeStruct = Items<'s>;
    type SerializeStructVariant = Items<'s>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.writer.boolean(value);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.writer.int(value);
        Ok(())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        match i32::try_from(value) {
            Ok(value) => self.writer.int(value),
            Err(_) => self.long(&value.to_le_bytes()),
        }
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        match i64::try_from(value) {
            Ok(value) => self.serialize_i64(value),
            Err(_) => {
                self.long(&value.to_le_bytes());
                Ok(())
            }
        }
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.serialize_u128(value.into())
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        match i128::try_from(value) {
            Ok(value) => self.serialize_i128(value),
            Err(_) => {
                // A digit more, or the top bit would be a sign.
                let mut digits = [0; 17];
                digits[..16].copy_from_slice(&value.to_le_bytes());
                self.long(&digits);
                Ok(())
            }
        }
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.writer.float(value);
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        let bypass = Writer::<Vec<u8>>::bypasses_frame(value.len());
        if bypass {
            self.writer.close_frame();
        }
        let _ = self.writer.bytes_header(value.len());
        self.writer.raw(value);
        if bypass {
            self.writer.open_frame();
        }
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.writer.none();
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_none()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.name(variant);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.open_variant(variant);
        value.serialize(&mut *self)?;
        self.writer.opcode(byte::SETITEM);
        Ok(())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Items<'s>, Error> {
        self.writer.opcodes([byte::EMPTY_LIST, byte::MARK]);
        Ok(Items {
            serializer: self,
            close: byte::APPENDS,
            within_variant: false,
        })
    }

    fn serialize_tuple(self, _len: usize) -> Result<Items<'s>, Error> {
        self.writer.opcode(byte::MARK);
        Ok(Items {
            serializer: self,
            close: byte::TUPLE,
            within_variant: false,
        })
    }

    fn serialize_tuple_struct(self, _name: &'static str, len: usize) -> Result<Items<'s>, Error> {
        self.serialize_tuple(len)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Items<'s>, Error> {
        self.open_variant(variant);
        self.writer.opcode(byte::MARK);
        Ok(Items {
            serializer: self,
            close: byte::TUPLE,
            within_variant: true,
        })
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Items<'s>, Error> {
        self.open_dict();
        Ok(Items {
            serializer: self,
            close: byte::SETITEMS,
            within_variant: false,
        })
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Items<'s>, Error> {
        self.open_dict();
        Ok(Items {
            serializer: self,
            close: byte::SETITEMS,
            within_variant: false,
        })
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Items<'s>, Error> {
        self.open_variant(variant);
        self.open_dict();
        Ok(Items {
            serializer: self,
            close: byte::SETITEMS,
            within_variant: true,
        })
    }
}

/// A list, tuple or dict under way.
struct Items<'s> {
    serializer: &'s mut Serializer,
    close: u8,
    within_variant: bool,
}

impl Items<'_> {
    fn add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.serializer)?;
        self.serializer.between_objects();
        Ok(())
    }

    fn add_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.serializer.name(name);
        self.add(value)
    }

    fn finish(self) {
        self.serializer.writer.opcode(self.close);
        if self.within_variant {
            self.serializer.writer.opcode(byte::SETITEM);
        }
    }
}

macro_rules! sequence {
    ($($of:ident $method:ident),*) => {
        $(impl ser::$of for Items<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.add(value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish();
                Ok(())
            }
        })*
    };
}

macro_rules! fields {
    ($($of:ident),*) => {
        $(impl ser::$of for Items<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
                self.add_field(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish();
                Ok(())
            }
        })*
    };
}

sequence!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);
fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Items<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        key.serialize(&mut *self.serializer)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.add(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}
