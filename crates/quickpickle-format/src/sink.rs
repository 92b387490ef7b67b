//! Where bytes go: an append-only buffer whose tail can be patched, which is all that framing needs.
//!
//! `Vec<u8>` is the sink of pure Rust code. The extension module has another that grows a Python bytes object in place.
//! A sink that runs out of memory remembers it and drops what follows; the owner asks at the end, so that writing one
//! opcode needs no `Result`.

/// An append-only byte buffer.
pub trait Sink {
    /// Number of bytes held.
    fn len(&self) -> usize;

    /// Whether nothing is held.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `N` bytes; the size is known when compiling, so this is a few stores.
    fn put<const N: usize>(&mut self, bytes: [u8; N]);

    /// Appends the first `used` of `N` bytes; a sink may write the others behind them, where they do not count.
    fn put_start<const N: usize>(&mut self, bytes: [u8; N], used: usize) {
        self.put_slice(&bytes[..used.min(N)]);
    }

    /// Appends `bytes`.
    fn put_slice(&mut self, bytes: &[u8]);

    /// Appends a header and a short payload with one check of the room left.
    fn put_both<const N: usize>(&mut self, header: [u8; N], payload: &[u8]) {
        self.put(header);
        self.put_slice(payload);
    }

    /// Appends a header, a short payload and one byte more.
    fn put_between<const N: usize>(&mut self, header: [u8; N], payload: &[u8], last: u8) {
        self.put_both(header, payload);
        self.put([last]);
    }

    /// Overwrites the eight bytes at `at`. Does nothing where fewer are held.
    fn patch(&mut self, at: usize, bytes: [u8; 8]);

    /// Removes `count` bytes at `at`, moving up what follows.
    fn remove(&mut self, at: usize, count: usize);

    /// Forgets everything, keeping the memory.
    fn clear(&mut self);
}

impl Sink for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.extend_from_slice(&bytes);
    }

    fn put_slice(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn patch(&mut self, at: usize, bytes: [u8; 8]) {
        if let Some(room) = self.get_mut(at..at + 8) {
            room.copy_from_slice(&bytes);
        }
    }

    fn remove(&mut self, at: usize, count: usize) {
        self.drain(at..at + count);
    }

    fn clear(&mut self) {
        self.clear();
    }
}
