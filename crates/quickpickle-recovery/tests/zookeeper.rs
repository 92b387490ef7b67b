//! What only ZooKeeper can do to a store: servers that die and come back, sessions that are lost, masters that are overtaken.
//!
//! Every test starts a real server. Where Debian's package or Java is missing the tests say so and pass.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quickpickle_recovery::{
    CodecId, Config, Entry, ErrorKind, PersistenceEngine, Wait, ZooKeeperEngine, ZooKeeperOptions,
};
use support::zookeeper::Server;
use zookeeper_client as zk;

const DIR: &str = "/spark";

fn options() -> ZooKeeperOptions {
    ZooKeeperOptions {
        operation_timeout: Duration::from_secs(10),
        session_timeout: Duration::from_secs(2),
        ..ZooKeeperOptions::default()
    }
}

fn open(server: &Server) -> ZooKeeperEngine {
    ZooKeeperEngine::open(&server.address(), DIR, options()).unwrap()
}

/// Does something with a plain client, as an administrator would.
fn with_client<T>(server: &Server, work: impl AsyncFnOnce(&zk::Client) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = zk::Client::connect(&server.address()).await.unwrap();
        work(&client).await
    })
}

#[test]
fn values_over_the_servers_limit_are_kept_in_parts() {
    let Some(server) = Server::start() else {
        return;
    };
    let engine = open(&server);
    let noise = |size: usize| -> Vec<u8> {
        (0..size as u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 9) as u8)
            .collect()
    };
    let sizes = [
        0,
        1,
        512 << 10,
        (512 << 10) + 1,
        1_000_000,
        1_040_000,
        1_048_576,
        1_100_000,
        5_000_000,
    ];
    for size in sizes {
        engine.persist(&format!("v_{size}"), &noise(size)).unwrap();
    }
    for size in sizes {
        assert!(
            engine.get(&format!("v_{size}")).unwrap().unwrap().value == noise(size),
            "{size}"
        );
    }
    assert_eq!(engine.read("v_").unwrap().len(), sizes.len());
    let started = Instant::now();
    let error = engine
        .persist("huge", &vec![0; (64 << 20) + 1])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(
        started.elapsed() < options().operation_timeout,
        "refused at once, not after a wait"
    );

    // A large value replaced or removed takes its parts with it.
    let parts = |server: &Server| {
        with_client(server, async |client| {
            client
                .list_children("/spark/quickpickle/chunks")
                .await
                .unwrap()
                .len()
        })
    };
    assert_eq!(parts(&server), 2 + 2 + 2 + 2 + 3 + 10);
    engine.persist("v_5000000", b"small now").unwrap();
    engine.unpersist("v_1000000").unwrap();
    engine.persist("v_1048576", &noise(600_000)).unwrap();
    assert_eq!(parts(&server), 2 + 2 + 2 + 3);
    drop(engine);
    let engine = open(&server);
    assert_eq!(
        engine.get("v_5000000").unwrap().unwrap().value,
        b"small now"
    );
    assert!(engine.get("v_1048576").unwrap().unwrap().value == noise(600_000));
}

#[test]
fn parts_without_an_entry_are_cleared_away() {
    let Some(server) = Server::start() else {
        return;
    };
    let engine = open(&server);
    engine.persist("kept", &vec![1; 700_000]).unwrap();
    engine.close().unwrap();
    // What a master leaves that dies between the parts of a value and its entry.
    let stray = "/spark/quickpickle/chunks/00000000000000ff-0000";
    let options = zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all());
    with_client(&server, async |client| {
        client
            .create(stray, b"x", &options)
            .await
            .map(drop)
            .unwrap()
    });
    let engine = open(&server);
    assert!(with_client(&server, async |client| client
        .check_stat(stray)
        .await
        .unwrap()
        .is_none()));
    assert!(engine.get("kept").unwrap().unwrap().value == vec![1; 700_000]);
}

#[test]
fn a_batch_takes_few_transactions_and_the_last_of_equal_names_wins() {
    let Some(server) = Server::start() else {
        return;
    };
    let engine = open(&server);
    let mut entries: Vec<Entry> = (0..1000_u32)
        .map(|i| Entry {
            name: format!("w_{i:04}"),
            codec: CodecId::JAVA,
            value: vec![i as u8; 1345],
        })
        .collect();
    entries.push(Entry {
        name: "w_0003".into(),
        codec: CodecId::RAW,
        value: vec![9; 900_000],
    });
    entries.push(Entry {
        name: "w_0004".into(),
        codec: CodecId::RAW,
        value: b"again".to_vec(),
    });
    let before = zxid(&server);
    engine.persist_batch(&entries).unwrap();
    let transactions = zxid(&server) - before;
    assert!(
        transactions < 25,
        "{transactions} transactions for {} entries",
        entries.len()
    );
    assert_eq!(engine.read("w_").unwrap().len(), 1000);
    assert_eq!(engine.get("w_0004").unwrap().unwrap().value, b"again");
    assert!(engine.get("w_0003").unwrap().unwrap().value == vec![9; 900_000]);
}

/// How many transactions there were, more or less.
fn zxid(server: &Server) -> i64 {
    with_client(server, async |client| {
        let options = zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all());
        let (stat, _) = client.create("/probe", b"", &options).await.unwrap();
        client.delete("/probe", None).await.unwrap();
        stat.czxid
    })
}

#[test]
fn a_server_killed_and_restarted_under_load_costs_time_and_nothing_else() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let engine = open(&server);
    let stop = AtomicBool::new(false);
    let mut outages = 0;
    let models: Vec<BTreeMap<String, BTreeSet<Option<Vec<u8>>>>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3_usize)
            .map(|thread| {
                let (engine, stop) = (&engine, &stop);
                scope.spawn(move || {
                    let mut model: BTreeMap<String, BTreeSet<Option<Vec<u8>>>> = BTreeMap::new();
                    for i in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let name = format!("t{thread}_{}", i % 11);
                        let value = (i % 5 != 4).then(|| {
                            vec![i as u8; 50 + i % 300 + if i % 37 == 0 { 700_000 } else { 0 }]
                        });
                        let started = Instant::now();
                        let result = match &value {
                            Some(value) => engine.persist(&name, value),
                            None => engine.unpersist(&name),
                        };
                        // Three writers take turns, so each may wait for the two others as well.
                        assert!(
                            started.elapsed() < 4 * options().operation_timeout,
                            "a call blocked for {:?}",
                            started.elapsed()
                        );
                        match result {
                            Ok(()) => {
                                model.insert(name, BTreeSet::from([value]));
                            }
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                                model
                                    .entry(name)
                                    .or_insert_with(|| BTreeSet::from([None]))
                                    .insert(value);
                            }
                        }
                    }
                    model
                })
            })
            .collect();
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(700));
            server.kill();
            std::thread::sleep(Duration::from_millis(500));
            server.restart();
            outages += 1;
        }
        std::thread::sleep(Duration::from_millis(700));
        stop.store(true, Ordering::Relaxed);
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect()
    });
    assert_eq!(outages, 4);
    engine.persist("after", b"all that").unwrap();
    drop(engine);
    let engine = ZooKeeperEngine::open(
        &server.address(),
        DIR,
        ZooKeeperOptions {
            strict: true,
            wait: Wait::For(Duration::from_secs(10)),
            ..options()
        },
    )
    .unwrap();
    let found: BTreeMap<String, Vec<u8>> = engine
        .read("t")
        .unwrap()
        .into_iter()
        .map(|entry| (entry.name, entry.value))
        .collect();
    let mut names = 0;
    for model in models {
        for (name, allowed) in model {
            names += 1;
            assert!(
                allowed.contains(&found.get(&name).cloned()),
                "{name} is not what was acknowledged"
            );
        }
    }
    assert!(names >= 30, "the writers hardly wrote: {names} names");
}

#[test]
fn a_server_that_does_not_answer_blocks_nobody_for_long() {
    let Some(server) = Server::start() else {
        return;
    };
    let limit = Duration::from_secs(2);
    let short = ZooKeeperOptions {
        operation_timeout: limit,
        session_timeout: Duration::from_secs(20),
        ..options()
    };
    let engine = ZooKeeperEngine::open(&server.address(), DIR, short.clone()).unwrap();
    engine.persist("a", b"1").unwrap();
    server.signal("STOP");
    for call in 0..3 {
        let started = Instant::now();
        let error = match call {
            0 => engine.persist("a", b"2").unwrap_err(),
            1 => engine.read("").unwrap_err(),
            _ => ZooKeeperEngine::open(&server.address(), "/elsewhere", short.clone()).unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(
            started.elapsed() < limit + Duration::from_secs(3),
            "call {call} blocked for {:?}",
            started.elapsed()
        );
    }
    server.signal("CONT");
    engine.persist("a", b"3").unwrap();
    assert_eq!(
        engine.get("a").unwrap().unwrap().value,
        b"3",
        "a write that was given up does not come after a later one"
    );
}

#[test]
fn no_server_at_all_is_an_error_soon() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let started = Instant::now();
    let short = ZooKeeperOptions {
        operation_timeout: Duration::from_secs(1),
        ..options()
    };
    let error = ZooKeeperEngine::open(&format!("127.0.0.1:{port}"), DIR, short).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_master_that_was_overtaken_is_fenced_for_good() {
    let Some(server) = Server::start() else {
        return;
    };
    let old = open(&server);
    old.persist("a", b"old").unwrap();
    old.sync().unwrap();
    // The servers give up the old master's lock, and it has not noticed.
    with_client(&server, async |client| {
        client
            .delete("/spark/quickpickle/lock", None)
            .await
            .unwrap()
    });
    let new = open(&server);
    new.persist("a", b"new").unwrap();
    assert_eq!(
        old.sync().unwrap_err().kind(),
        ErrorKind::Fenced,
        "a master that writes nothing learns of it by asking"
    );
    new.sync().unwrap();
    for _ in 0..2 {
        assert_eq!(
            old.persist("a", b"too late").unwrap_err().kind(),
            ErrorKind::Fenced
        );
        assert_eq!(old.unpersist("a").unwrap_err().kind(), ErrorKind::Fenced);
    }
    assert_eq!(
        old.revive().unwrap_err().kind(),
        ErrorKind::Fenced,
        "a fence does not open again"
    );
    assert_eq!(
        old.persist("large", &vec![1; 2_000_000])
            .unwrap_err()
            .kind(),
        ErrorKind::Fenced
    );
    old.close().unwrap();
    // The new master's lock is not touched by the old one's end.
    assert_eq!(
        ZooKeeperEngine::open(&server.address(), DIR, options())
            .unwrap_err()
            .kind(),
        ErrorKind::Locked
    );
    new.persist("b", b"still here").unwrap();
    assert_eq!(new.get("a").unwrap().unwrap().value, b"new");
    assert_eq!(new.names("").unwrap(), ["a", "b"]);
}

const MASTER: &str = "QUICKPICKLE_ZOOKEEPER_MASTER";

/// Another master in a process of its own, which writes a word for each line it is given.
struct Master {
    process: Child,
    answers: std::io::BufReader<std::process::ChildStdout>,
}

impl Master {
    fn start(server: &Server) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "master", "--ignored", "--nocapture", "--quiet"])
            .env(MASTER, server.address())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = std::io::BufReader::new(process.stdout.take().unwrap());
        let mut master = Self { process, answers };
        assert_eq!(master.answer(), "open");
        master
    }

    /// The next line the master says, past what the test harness prints.
    fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(
                std::io::BufRead::read_line(&mut self.answers, &mut line).unwrap() > 0,
                "the master is gone"
            );
            if let Some((_, answer)) = line.split_once("master: ") {
                return answer.trim().to_owned();
            }
        }
    }

    fn persist(&mut self, value: &str) -> String {
        use std::io::Write;
        writeln!(self.process.stdin.as_mut().unwrap(), "{value}").unwrap();
        self.answer()
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .args([&format!("-{signal}"), &self.process.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "the other master of the tests below; they start it"]
fn master() {
    let engine = ZooKeeperEngine::open(&std::env::var(MASTER).unwrap(), DIR, options()).unwrap();
    println!("master: open");
    for line in std::io::stdin().lines() {
        match engine.persist("shared", line.unwrap().as_bytes()) {
            Ok(()) => println!("master: ok"),
            Err(error) => println!("master: {}", error.kind().as_str()),
        }
    }
}

#[test]
fn a_paused_master_whose_session_ran_out_cannot_write_behind_its_successors_back() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut paused = Master::start(&server);
    assert_eq!(paused.persist("one"), "ok");
    paused.signal("STOP");
    let successor = ZooKeeperEngine::open(
        &server.address(),
        DIR,
        ZooKeeperOptions {
            wait: Wait::For(Duration::from_secs(20)),
            ..options()
        },
    )
    .unwrap();
    assert_eq!(successor.get("shared").unwrap().unwrap().value, b"one");
    successor.persist("shared", b"two").unwrap();
    paused.signal("CONT");
    assert_eq!(paused.persist("three"), "fenced");
    assert_eq!(paused.persist("four"), "fenced");
    assert_eq!(successor.get("shared").unwrap().unwrap().value, b"two");
}

#[test]
fn a_paused_master_nobody_has_overtaken_gets_a_new_session_and_its_lock_back() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut paused = Master::start(&server);
    assert_eq!(paused.persist("one"), "ok");
    paused.signal("STOP");
    let started = Instant::now();
    while with_client(&server, async |client| {
        client
            .check_stat("/spark/quickpickle/lock")
            .await
            .unwrap()
            .is_some()
    }) {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "the session did not run out"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    paused.signal("CONT");
    assert_eq!(paused.persist("two"), "ok");
    assert_eq!(
        ZooKeeperEngine::open(&server.address(), DIR, options())
            .unwrap_err()
            .kind(),
        ErrorKind::Locked
    );
    let reader = ZooKeeperEngine::open(
        &server.address(),
        DIR,
        ZooKeeperOptions {
            read_only: true,
            ..options()
        },
    )
    .unwrap();
    assert_eq!(reader.get("shared").unwrap().unwrap().value, b"two");
}

#[test]
fn a_standby_takes_over_from_a_killed_master() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut first = Master::start(&server);
    assert_eq!(first.persist("one"), "ok");
    let standby = Config {
        wait: Wait::Forever,
        session_timeout: Some(Duration::from_secs(2)),
        ..Config::zookeeper(server.address(), DIR)
    };
    let waiting = std::thread::spawn(move || standby.open().unwrap());
    std::thread::sleep(Duration::from_millis(500));
    assert!(!waiting.is_finished());
    assert_eq!(first.persist("two"), "ok");
    first.process.kill().unwrap();
    let second = waiting.join().unwrap();
    assert_eq!(second.get("shared").unwrap().unwrap().value, b"two");
    second.persist("shared", b"three").unwrap();
}

#[test]
fn a_changed_node_is_found_and_put_aside() {
    let Some(server) = Server::start() else {
        return;
    };
    let engine = open(&server);
    for name in ["a", "b", "c"] {
        engine.persist(name, name.as_bytes()).unwrap();
    }
    engine.persist("large", &vec![5; 800_000]).unwrap();
    let node = "/spark/quickpickle/entries/b";
    with_client(&server, async |client| {
        let (mut data, _) = client.get_data(node).await.unwrap();
        *data.last_mut().unwrap() ^= 1;
        client.set_data(node, &data, None).await.unwrap();
    });
    assert_eq!(engine.read("").unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(engine.verify().unwrap().damage[0].place, node);
    engine.close().unwrap();
    let strict = ZooKeeperOptions {
        strict: true,
        ..options()
    };
    assert_eq!(
        ZooKeeperEngine::open(&server.address(), DIR, strict.clone())
            .unwrap_err()
            .kind(),
        ErrorKind::Corrupt
    );
    let engine = open(&server);
    assert_eq!(engine.names("").unwrap(), ["a", "c", "large"]);
    let aside = engine.opening_report().damage[0]
        .quarantined_to
        .clone()
        .unwrap();
    assert!(with_client(&server, async |client| client
        .check_stat(&aside)
        .await
        .unwrap()
        .is_some()));
    engine.close().unwrap();
    let engine = ZooKeeperEngine::open(&server.address(), DIR, strict).unwrap();
    assert!(engine.get("large").unwrap().unwrap().value == vec![5; 800_000]);
}
