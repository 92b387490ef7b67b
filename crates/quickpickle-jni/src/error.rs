//! What goes wrong, as `io.quickpickle.recovery.RecoveryException`. Panics stop here: none unwinds into the JVM, which would end it.

use std::any::Any;

use jni::errors::ErrorPolicy;
use jni::objects::{JString, JThrowable, JValue};
use jni::{Env, jni_sig, jni_str};
use quickpickle_recovery::{Error, ErrorKind};

/// Why a native method did not answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An engine's error.
    Engine(Error),
    /// The JVM's error; a Java exception may be pending.
    Jvm(jni::errors::Error),
    /// An argument the Java side never passes.
    Argument(&'static str),
}

impl Failure {
    pub(crate) fn argument(what: &'static str) -> Self {
        Self::Argument(what)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Self {
        Self::Jvm(error)
    }
}

/// Throws what a native method failed with.
pub(crate) struct ThrowRecoveryException;

impl<T: Default> ErrorPolicy<T, Failure> for ThrowRecoveryException {
    type Captures<'unowned_env_local: 'native_method, 'native_method> = ();

    fn on_error<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        _captures: &mut (),
        failure: Failure,
    ) -> jni::errors::Result<T> {
        if !env.exception_check() {
            match failure {
                Failure::Engine(error) => throw(
                    env,
                    kind_name(error.kind()),
                    error.place(),
                    &error.to_string(),
                )?,
                Failure::Jvm(error) => throw(
                    env,
                    "internal",
                    "",
                    &format!("the native library cannot talk to the JVM: {error}"),
                )?,
                Failure::Argument(what) => throw(
                    env,
                    "internal",
                    "",
                    &format!("{what}: not what the native library takes"),
                )?,
            }
        }
        Ok(T::default())
    }

    fn on_panic<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        _captures: &mut (),
        payload: Box<dyn Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        let said = payload
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "nothing in words".into());
        if !env.exception_check() {
            let message = format!("a bug in the native library; it panicked: {said}");
            throw(env, "internal", "", &message)?;
        }
        Ok(T::default())
    }
}

fn kind_name(kind: ErrorKind) -> &'static str {
    kind.as_str()
}

/// Leaves the exception pending, for Java to find when the native method returns.
fn throw(env: &mut Env<'_>, kind: &str, place: &str, message: &str) -> jni::errors::Result<()> {
    let class = env.find_class(jni_str!("io/quickpickle/recovery/RecoveryException"))?;
    let kind = JString::from_str(env, kind)?;
    let place = JString::from_str(env, place)?;
    let message = JString::from_str(env, message)?;
    let exception = env.new_object(
        &class,
        jni_sig!("(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;)V"),
        &[
            JValue::Object(&kind),
            JValue::Object(&place),
            JValue::Object(&message),
        ],
    )?;
    let exception = env.cast_local::<JThrowable>(exception)?;
    match env.throw(exception) {
        Err(jni::errors::Error::JavaException) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}
