//! What a JVM loads as `libquickpickle_jni.so`: the native methods of `io.quickpickle.recovery.Engine` and `NativeLibrary`.
//!
//! This file is the table of those methods and nothing else. They take and give numbers and byte arrays only: text is UTF-8, so that
//! neither Java's modified UTF-8 nor a lost surrogate changes a name. `handle` keeps the engines, `convert` copies arrays, `error` turns
//! what goes wrong into Java exceptions. What the engines do is `quickpickle-recovery`'s business; Spark is the Java side's.

mod convert;
mod error;
mod handle;

use std::sync::Once;

use jni::objects::{JByteArray, JClass, JObjectArray};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, NativeMethod, native_method};
use quickpickle_recovery::{CodecId, EngineKind};

use crate::error::{Failure, ThrowRecoveryException};

/// Changes with the signatures and the packed layouts; the Java side refuses a library that says something else.
const INTERFACE: jint = 1;

/// `Engine` and `NativeLibrary` find these by the names they are exported under.
const _: &[NativeMethod] = &[
    native_method! { java_type = "io.quickpickle.recovery.NativeLibrary", error_policy = ThrowRecoveryException,
    static extern fn interface_version() -> jint },
    native_method! { java_type = "io.quickpickle.recovery.NativeLibrary", error_policy = ThrowRecoveryException,
    static extern fn panic_on_purpose() -> void },
    native_method! { java_type = "io.quickpickle.recovery.Engine", error_policy = ThrowRecoveryException,
    static extern fn prepare(settings: byte[]) -> jlong },
    native_method! { java_type = "io.quickpickle.recovery.Engine", error_policy = ThrowRecoveryException,
    static extern fn describe(handle: jlong) -> byte[] },
    native_method! { java_type = "io.quickpickle.recovery.Engine", error_policy = ThrowRecoveryException,
    static extern fn open(handle: jlong, wait: jboolean) -> void },
    native_method! { java_type = "io.quickpickle.recovery.Engine", error_policy = ThrowRecoveryException,
    static extern fn persist(handle: jlong, name: byte[], codec: jint, value: byte[], offset: jint, length: jint) -> void },
    native_method! { java_type = "io.quickpickle.recovery.Engine", error_policy = ThrowRecoveryException,
    static extern fn unpersist(handle: jlong, name: byte[]) -> void },
    native_method! { java_type = "io.quickpickle.recovery.Engine", error_policy = ThrowRecoveryException,
    static extern fn read(handle: jlong, prefix: byte[]) -> byte[][] },
    native_method! { java_type = "io.quickpickle.recovery.Engine", error_policy = ThrowRecoveryException,
    static extern fn sync(handle: jlong) -> void },
    native_method! { java_type = "io.quickpickle.recovery.Engine", error_policy = ThrowRecoveryException,
    static extern fn revive(handle: jlong) -> void },
    native_method! { java_type = "io.quickpickle.recovery.Engine", error_policy = ThrowRecoveryException,
    static extern fn report(handle: jlong) -> byte[] },
    native_method! { java_type = "io.quickpickle.recovery.Engine", error_policy = ThrowRecoveryException,
    static extern fn close(handle: jlong) -> void },
];

type Answer<T> = Result<T, Failure>;

fn interface_version(_env: &mut Env<'_>, _class: JClass<'_>) -> Answer<jint> {
    Ok(INTERFACE)
}

/// For the test that a panic arrives in Java as an exception.
fn panic_on_purpose(_env: &mut Env<'_>, _class: JClass<'_>) -> Answer<()> {
    panic!("asked for")
}

/// Settings as keys and values in turn; answers the handle of an engine that is not open yet.
fn prepare(env: &mut Env<'_>, _class: JClass<'_>, settings: JByteArray<'_>) -> Answer<jlong> {
    log_to_stderr();
    let settings = convert::strings(&convert::bytes(env, &settings)?)?;
    Ok(handle::prepare(&settings)?)
}

/// Two strings: the engine's kind, and where it is.
fn describe<'local>(
    env: &mut Env<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> Answer<JByteArray<'local>> {
    let slot = handle::get(handle)?;
    let config = slot.config();
    let kind = config.engine_kind();
    let place = match kind {
        EngineKind::ZooKeeper => format!(
            "{}{}",
            config.zookeeper_url.as_deref().unwrap_or_default(),
            config.zookeeper_dir.as_deref().unwrap_or("/spark")
        ),
        EngineKind::BlackHole => String::new(),
        EngineKind::Log | EngineKind::FileSystem => config
            .directory
            .as_ref()
            .map_or_else(String::new, |directory| directory.display().to_string()),
    };
    let sync = config.durability.to_string();
    convert::packed_strings(env, &[kind.as_str(), &place, &sync])
}

fn open(_env: &mut Env<'_>, _class: JClass<'_>, handle: jlong, wait: jboolean) -> Answer<()> {
    Ok(handle::get(handle)?.open(wait)?)
}

#[expect(clippy::too_many_arguments, reason = "Java's arguments, one by one")]
fn persist(
    env: &mut Env<'_>,
    _class: JClass<'_>,
    handle: jlong,
    name: JByteArray<'_>,
    codec: jint,
    value: JByteArray<'_>,
    offset: jint,
    length: jint,
) -> Answer<()> {
    let slot = handle::get(handle)?;
    let engine = slot.engine()?;
    let name = convert::string(env, &name)?;
    let codec = CodecId::from_u16(u16::try_from(codec).map_err(|_| Failure::argument("codec"))?);
    let value = convert::part(env, &value, offset, length)?;
    Ok(engine.persist_tagged(&name, codec, &value)?)
}

fn unpersist(
    env: &mut Env<'_>,
    _class: JClass<'_>,
    handle: jlong,
    name: JByteArray<'_>,
) -> Answer<()> {
    let slot = handle::get(handle)?;
    let name = convert::string(env, &name)?;
    Ok(slot.engine()?.unpersist(&name)?)
}

fn read<'local>(
    env: &mut Env<'local>,
    _class: JClass<'local>,
    handle: jlong,
    prefix: JByteArray<'local>,
) -> Answer<JObjectArray<'local, JByteArray<'local>>> {
    let slot = handle::get(handle)?;
    let prefix = convert::string(env, &prefix)?;
    let entries = slot.engine()?.read(&prefix)?;
    convert::packed_entries(env, &entries)
}

fn sync(_env: &mut Env<'_>, _class: JClass<'_>, handle: jlong) -> Answer<()> {
    Ok(handle::get(handle)?.engine()?.sync()?)
}

fn revive(_env: &mut Env<'_>, _class: JClass<'_>, handle: jlong) -> Answer<()> {
    Ok(handle::get(handle)?.engine()?.revive()?)
}

/// What opening found: a line for each thing worth telling, worst first; none if all is well.
fn report<'local>(
    env: &mut Env<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> Answer<JByteArray<'local>> {
    let slot = handle::get(handle)?;
    let report = slot.engine()?.opening_report();
    convert::packed_report(env, &report)
}

fn close(_env: &mut Env<'_>, _class: JClass<'_>, handle: jlong) -> Answer<()> {
    Ok(handle::close(handle)?)
}

/// Warnings of the engines' background threads reach the master's own output. The first engine switches this on.
fn log_to_stderr() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Somebody else's subscriber is as good.
        let _ = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_ansi(false)
            .with_writer(std::io::stderr)
            .try_init();
    });
}
