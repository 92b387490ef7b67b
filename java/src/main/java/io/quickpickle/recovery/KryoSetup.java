package io.quickpickle.recovery;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.Serializer;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import com.esotericsoftware.kryo.serializers.FieldSerializer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import org.apache.spark.deploy.master.ApplicationInfo;
import org.apache.spark.deploy.master.DriverInfo;
import org.apache.spark.deploy.master.WorkerInfo;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.serializer.KryoRegistrator;

/**
 * What Kryo must know of a master's records.
 *
 * <p>Kryo makes objects without a constructor and leaves transient fields null; a master that works with such a {@code WorkerInfo} never
 * completes its recovery. Java deserialisation calls the private {@code init()} of the three record classes, so the same is done here.
 * Endpoint references find their environment while Java deserialisation reads them, so they travel by Java serialisation.
 */
public final class KryoSetup implements KryoRegistrator {
    @Override
    public void registerClasses(Kryo kryo) {
        kryo.register(WorkerInfo.class, new InitializingSerializer<>(kryo, WorkerInfo.class));
        kryo.register(ApplicationInfo.class, new InitializingSerializer<>(kryo, ApplicationInfo.class));
        kryo.register(DriverInfo.class, new InitializingSerializer<>(kryo, DriverInfo.class));
        kryo.addDefaultSerializer(RpcEndpointRef.class, EndpointSerializer.class);
    }

    /** All fields that are not transient, then {@code init()}. */
    private static final class InitializingSerializer<T> extends FieldSerializer<T> {
        private final MethodHandle init;

        InitializingSerializer(Kryo kryo, Class<T> type) {
            super(kryo, type);
            try {
                Method method = type.getDeclaredMethod("init");
                method.setAccessible(true);
                init = MethodHandles.lookup().unreflect(method).asType(MethodType.methodType(void.class, Object.class));
            } catch (ReflectiveOperationException | RuntimeException error) {
                throw new KryoException(type.getName() + " of this Spark has no init() to call; use the java serialiser", error);
            }
        }

        @Override
        public T read(Kryo kryo, Input input, Class<T> type) {
            T record = super.read(kryo, input, type);
            try {
                init.invokeExact((Object) record);
            } catch (Throwable error) {
                throw new KryoException("init() of a " + type.getName() + " failed", error);
            }
            return record;
        }
    }

    /** An endpoint reference as Java serialisation writes it, after its length. */
    public static final class EndpointSerializer extends Serializer<RpcEndpointRef> {
        private final JavaCodec.Reader reader = new JavaCodec.Reader();

        @Override
        public void write(Kryo kryo, Output output, RpcEndpointRef reference) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream(1024);
            try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                out.writeObject(reference);
            } catch (IOException error) {
                throw new KryoException("cannot write an endpoint reference", error);
            }
            output.writeInt(bytes.size(), true);
            output.writeBytes(bytes.toByteArray());
        }

        @Override
        public RpcEndpointRef read(Kryo kryo, Input input, Class<RpcEndpointRef> type) {
            byte[] bytes = input.readBytes(input.readInt(true));
            try {
                return (RpcEndpointRef) reader.read(bytes);
            } catch (IOException | ClassNotFoundException | ClassCastException error) {
                throw new KryoException("cannot read an endpoint reference", error);
            }
        }
    }
}
