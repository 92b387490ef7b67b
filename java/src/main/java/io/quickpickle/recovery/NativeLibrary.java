package io.quickpickle.recovery;

import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;

/**
 * Finds and loads {@code libquickpickle_jni.so}, once for each JVM.
 *
 * <p>It is looked for where the system property {@value #PROPERTY} says, then beside this jar, then on {@code java.library.path}. A
 * library of another release is refused: its methods may take something else.
 */
final class NativeLibrary {
    /** Path of the library, if it is not beside the jar. */
    static final String PROPERTY = "io.quickpickle.recovery.library";

    /** Must be what the library answers; see {@code INTERFACE} there. */
    private static final int INTERFACE = 1;

    private static final String NAME = "quickpickle_jni";
    private static boolean loaded;

    private NativeLibrary() {}

    /** Loads the library unless it is; fails with {@link RecoveryException.Kind#CONFIG} and says where it looked. */
    static synchronized void load() {
        if (loaded) {
            return;
        }
        Path file = find();
        try {
            if (file != null) {
                System.load(file.toAbsolutePath().toString());
            } else {
                System.loadLibrary(NAME);
            }
            int found = interfaceVersion();
            if (found != INTERFACE) {
                throw failure("has interface " + found + ", but this jar needs " + INTERFACE
                        + ": take jar and library from one release", file, null);
            }
        } catch (UnsatisfiedLinkError error) {
            throw failure("cannot be loaded: " + error.getMessage() + "; keep it beside the jar, or name it in -D" + PROPERTY, file,
                    error);
        }
        loaded = true;
    }

    private static RecoveryException failure(String message, Path file, Throwable cause) {
        String name = file == null ? System.mapLibraryName(NAME) : file.toString();
        return new RecoveryException(RecoveryException.Kind.CONFIG, name, "the native library " + name + " " + message, cause);
    }

    /** The library's file; {@code null} leaves it to {@code java.library.path}. */
    private static Path find() {
        String named = System.getProperty(PROPERTY);
        if (named != null && !named.isEmpty()) {
            return Path.of(named);
        }
        CodeSource source = NativeLibrary.class.getProtectionDomain().getCodeSource();
        if (source == null) {
            return null;
        }
        try {
            Path beside = Path.of(source.getLocation().toURI()).resolveSibling(System.mapLibraryName(NAME));
            return Files.isRegularFile(beside) ? beside : null;
        } catch (URISyntaxException | IllegalArgumentException | java.nio.file.FileSystemNotFoundException error) {
            return null;
        }
    }

    private static native int interfaceVersion();

    /** Panics inside the library. A test sees that this arrives as an exception and harms nothing. */
    static native void panicOnPurpose();
}
