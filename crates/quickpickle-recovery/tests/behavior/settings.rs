//! Settings from properties, files, variables and addresses lead to the engine they describe, or to an error that says why not.

use std::time::Duration;

use quickpickle_recovery::{CodecId, Compression, Config, Durability, EngineKind, ErrorKind, Wait};

#[test]
fn spark_properties_are_understood() {
    let config = Config::from_properties(
        "# a comment\n\
         spark.master                            spark://host:7077\n\
         spark.deploy.recoveryMode               LOG\n\
         spark.deploy.recoveryDirectory          /var/lib/spark recovery\n\
         spark.deploy.recoverySerializer=kryo\n\
         spark.deploy.recoveryCompressionCodec = zstd\n\
         spark.quickpickle.recovery.sync         group(25)\n\
         spark.quickpickle.recovery.strict       true\n\
         spark.quickpickle.recovery.wait         30s\n\
         spark.quickpickle.recovery.segmentBytes 65536\n",
    )
    .unwrap();
    assert_eq!(config.engine_kind(), EngineKind::Log);
    assert_eq!(
        config.directory.unwrap().to_str(),
        Some("/var/lib/spark recovery")
    );
    assert_eq!(config.serializer, Some(CodecId::KRYO));
    assert_eq!(config.compression, Compression::Zstd);
    assert_eq!(
        config.durability,
        Durability::Group(Duration::from_millis(25))
    );
    assert_eq!(
        (config.strict, config.wait, config.segment_bytes),
        (true, Wait::For(Duration::from_secs(30)), Some(65536))
    );
}

#[test]
fn sparks_own_modes_have_their_engines() {
    for (mode, engine) in [
        ("NONE", EngineKind::BlackHole),
        ("FILESYSTEM", EngineKind::FileSystem),
        ("ZOOKEEPER", EngineKind::ZooKeeper),
        ("log", EngineKind::Log),
    ] {
        let config = Config::from_properties(&format!("spark.deploy.recoveryMode {mode}")).unwrap();
        assert_eq!(config.engine_kind(), engine, "{mode}");
    }
    let zookeeper = Config::from_properties(
        "spark.deploy.recoveryMode ZOOKEEPER\nspark.deploy.zookeeper.url a:2181,b:2181\nspark.deploy.zookeeper.dir /spark-recovery",
    )
    .unwrap();
    assert_eq!(zookeeper.zookeeper_url.as_deref(), Some("a:2181,b:2181"));
    assert_eq!(zookeeper.zookeeper_dir.as_deref(), Some("/spark-recovery"));
}

#[test]
fn a_value_that_makes_no_sense_is_an_error_that_names_its_key() {
    for (key, value) in [
        ("spark.deploy.recoveryMode", "ROCKSDB"),
        ("spark.deploy.recoveryMode", "SQLITE"),
        ("spark.deploy.recoverySerializer", "json"),
        ("spark.deploy.recoveryCompressionCodec", "snappy"),
        ("spark.quickpickle.recovery.sync", "sometimes"),
        ("spark.quickpickle.recovery.sync", "group(0)"),
        ("spark.quickpickle.recovery.strict", "maybe"),
        ("spark.quickpickle.recovery.wait", "a while"),
        ("spark.quickpickle.recovery.segmentBytes", "1"),
        ("spark.quickpickle.recovery.snyc", "always"),
    ] {
        let error = Config::default().set(key, value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{key}={value}");
        assert!(error.to_string().starts_with(key), "{error}");
    }
    assert!(
        !Config::default().set("spark.master", "anything").unwrap(),
        "not ours"
    );
}

#[test]
fn variables_are_read_and_ours_win_over_the_java_options() {
    let vars = [
        (
            "SPARK_DAEMON_JAVA_OPTS",
            "-Xmx1g -Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory=/a -Dspark.quickpickle.recovery.sync=none",
        ),
        ("QUICKPICKLE_RECOVERY_DIRECTORY", "/b"),
        ("QUICKPICKLE_RECOVERY_STRICT", "1"),
        ("HOME", "/home/somebody"),
    ];
    let config =
        Config::from_vars(vars.map(|(key, value)| (key.to_owned(), value.to_owned()))).unwrap();
    assert_eq!(config.engine_kind(), EngineKind::FileSystem);
    assert_eq!(config.directory.unwrap().to_str(), Some("/b"));
    assert_eq!((config.durability, config.strict), (Durability::None, true));
    let wrong =
        Config::from_vars([("QUICKPICKLE_RECOVERY_SNYC".to_owned(), "x".to_owned())]).unwrap_err();
    assert!(
        wrong.to_string().contains("QUICKPICKLE_RECOVERY_SNYC"),
        "{wrong}"
    );
}

#[test]
fn addresses_name_engines() {
    let kind = |url: &str| {
        Config::from_url(url)
            .map(|config| (config.engine_kind(), config.directory, config.zookeeper_dir))
    };
    assert_eq!(
        kind("log:/a").unwrap(),
        (EngineKind::Log, Some("/a".into()), None)
    );
    assert_eq!(
        kind("log:///a").unwrap(),
        (EngineKind::Log, Some("/a".into()), None)
    );
    assert_eq!(
        kind("fs:b").unwrap(),
        (EngineKind::FileSystem, Some("b".into()), None)
    );
    assert_eq!(
        kind("file:///b/c").unwrap(),
        (EngineKind::FileSystem, Some("/b/c".into()), None)
    );
    assert_eq!(kind("black_hole:").unwrap().0, EngineKind::BlackHole);
    assert_eq!(kind("blackhole:").unwrap().0, EngineKind::BlackHole);
    assert_eq!(
        kind("zk://h:1,i:2/x/y").unwrap(),
        (EngineKind::ZooKeeper, None, Some("/x/y".into()))
    );
    assert_eq!(
        kind("/plain/path").unwrap(),
        (EngineKind::Log, Some("/plain/path".into()), None)
    );
    assert_eq!(
        kind("odd:name").unwrap(),
        (EngineKind::Log, Some("odd:name".into()), None)
    );
    for wrong in ["s3://bucket/x", "log:", "zk:///dir", ""] {
        assert_eq!(
            kind(wrong).unwrap_err().kind(),
            ErrorKind::Config,
            "{wrong:?}"
        );
    }
}

#[test]
fn settings_come_from_a_file_and_open_an_engine() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("recovery.conf");
    let store = directory.path().join("store");
    std::fs::write(
        &file,
        format!(
            "spark.deploy.recoveryDirectory {}\nspark.quickpickle.recovery.sync none\n",
            store.display()
        ),
    )
    .unwrap();
    let engine = Config::from_file(&file).unwrap().open().unwrap();
    engine.persist("a", b"1").unwrap();
    let stats = engine.stats().unwrap();
    assert_eq!(
        (stats.engine.as_str(), stats.sync.as_str(), stats.entries),
        ("log", "none", 1)
    );
    assert_eq!(stats.store_id.len(), 32);
    assert_eq!(
        Config::from_file(directory.path().join("absent"))
            .unwrap_err()
            .kind(),
        ErrorKind::Io
    );
    assert_eq!(
        Config::default().open().unwrap_err().kind(),
        ErrorKind::Config,
        "no directory"
    );
}
