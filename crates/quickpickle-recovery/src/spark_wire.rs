//! How a worker is written where bytes count: without what can be worked out from the rest.
//!
//! Spark makes a worker's id of its start time, host and port, its web address of its host, and its endpoint's address is its own. Where
//! a worker is like that, only the parts are kept; where it is not, the text itself is. Nothing is lost either way: what would not come
//! back letter by letter is not taken apart.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::spark::{ResourceInformation, RpcEndpoint, WorkerInfo};

const ENDPOINT_NAME: &str = "Worker";
/// Digits of a start time: year to second.
const TIME_DIGITS: usize = 14;

#[derive(Serialize, Deserialize)]
pub(crate) struct Packed<'a> {
    host: Host<'a>,
    port: u16,
    cores: u32,
    memory: u64,
    id: WorkerId<'a>,
    /// `None`: host and port of the worker, and the name workers have.
    endpoint: Option<Cow<'a, RpcEndpoint>>,
    web: WebAddress<'a>,
    resources: Cow<'a, BTreeMap<String, ResourceInformation>>,
}

#[derive(Serialize, Deserialize)]
enum Host<'a> {
    V4([u8; 4]),
    Text(Cow<'a, str>),
}

#[derive(Serialize, Deserialize)]
enum WorkerId<'a> {
    /// `worker-TIME-HOST-PORT`, the time as a number.
    Started(u64),
    Text(Cow<'a, str>),
}

#[derive(Serialize, Deserialize)]
enum WebAddress<'a> {
    /// `http://HOST:PORT`.
    Port(u16),
    Text(Cow<'a, str>),
}

impl<'a> Packed<'a> {
    pub(crate) fn pack(worker: &'a WorkerInfo) -> Self {
        let host = &worker.host;
        let own_endpoint = worker.endpoint.host == *host
            && worker.endpoint.port == worker.port
            && worker.endpoint.name == ENDPOINT_NAME;
        Self {
            host: pack_host(host),
            port: worker.port,
            cores: worker.cores,
            memory: worker.memory,
            id: pack_id(&worker.id, host, worker.port).map_or_else(
                || WorkerId::Text(worker.id.as_str().into()),
                WorkerId::Started,
            ),
            endpoint: (!own_endpoint).then_some(Cow::Borrowed(&worker.endpoint)),
            web: pack_web(&worker.web_ui_address, host).map_or_else(
                || WebAddress::Text(worker.web_ui_address.as_str().into()),
                WebAddress::Port,
            ),
            resources: Cow::Borrowed(&worker.resources),
        }
    }

    pub(crate) fn unpack(self) -> WorkerInfo {
        let host = match self.host {
            Host::V4(octets) => v4_text(octets),
            Host::Text(text) => text.into_owned(),
        };
        let id = match self.id {
            WorkerId::Started(time) => id_text(time, &host, self.port),
            WorkerId::Text(text) => text.into_owned(),
        };
        let web_ui_address = match self.web {
            WebAddress::Port(port) => web_text(&host, port),
            WebAddress::Text(text) => text.into_owned(),
        };
        let endpoint = match self.endpoint {
            Some(endpoint) => endpoint.into_owned(),
            None => RpcEndpoint {
                host: host.clone(),
                port: self.port,
                name: ENDPOINT_NAME.into(),
            },
        };
        WorkerInfo {
            id,
            host,
            port: self.port,
            cores: self.cores,
            memory: self.memory,
            endpoint,
            web_ui_address,
            resources: self.resources.into_owned(),
        }
    }
}

fn pack_host(host: &str) -> Host<'_> {
    // The parser accepts one spelling only: four decimal numbers without leading zeros.
    match host.parse::<Ipv4Addr>() {
        Ok(address) => Host::V4(address.octets()),
        Err(_) => Host::Text(host.into()),
    }
}

fn pack_id(id: &str, host: &str, port: u16) -> Option<u64> {
    let (time, rest) = id.strip_prefix("worker-")?.split_at_checked(TIME_DIGITS)?;
    let rest = rest
        .strip_prefix('-')?
        .strip_prefix(host)?
        .strip_prefix('-')?;
    let digits = time.bytes().all(|byte| byte.is_ascii_digit());
    (digits && is_number(rest, port)).then(|| time.parse().ok())?
}

fn pack_web(address: &str, host: &str) -> Option<u16> {
    let port = address
        .strip_prefix("http://")?
        .strip_prefix(host)?
        .strip_prefix(':')?;
    let number = port.parse().ok()?;
    is_number(port, number).then_some(number)
}

/// Whether `text` is how `number` is written, without a sign or leading zeros.
fn is_number(text: &str, number: u16) -> bool {
    let plain = text.len() == 1 || !text.starts_with(['0', '+']);
    plain && text.parse() == Ok(number)
}

/// The three below write digits themselves: formatting through `fmt` took most of the time of reading a worker.
fn push_number(text: &mut String, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.extend(digits[at..].iter().map(|&digit| char::from(digit)));
}

fn v4_text(octets: [u8; 4]) -> String {
    let mut text = String::with_capacity(15);
    for (at, octet) in octets.into_iter().enumerate() {
        if at > 0 {
            text.push('.');
        }
        push_number(&mut text, octet.into());
    }
    text
}

fn id_text(time: u64, host: &str, port: u16) -> String {
    let mut text = String::with_capacity(host.len() + 28);
    text.push_str("worker-");
    if time >= 10_u64.pow(TIME_DIGITS as u32 - 1) {
        push_number(&mut text, time);
    } else {
        let _ = write!(text, "{time:014}");
    }
    text.push('-');
    text.push_str(host);
    text.push('-');
    push_number(&mut text, port.into());
    text
}

fn web_text(host: &str, port: u16) -> String {
    let mut text = String::with_capacity(host.len() + 13);
    text.push_str("http://");
    text.push_str(host);
    text.push(':');
    push_number(&mut text, port.into());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(id: &str, host: &str, port: u16, web: &str) -> WorkerInfo {
        WorkerInfo {
            id: id.into(),
            host: host.into(),
            port,
            web_ui_address: web.into(),
            ..WorkerInfo::example(1)
        }
    }

    /// Every near miss of the usual form must come back letter by letter.
    #[test]
    fn what_is_not_quite_usual_comes_back_letter_by_letter() {
        let hosts = [
            "10.0.0.1",
            "010.0.0.1",
            "10.0.0.256",
            "10.0.0",
            "::1",
            "host",
            "",
            "-",
            "10.0.0.1 ",
        ];
        let times = [
            "20260101000000",
            "00000000000000",
            "99999999999999",
            "2026010100000",
            "2026010100000x",
            "+2026010100000",
            "é2026010100000",
        ];
        let ports = ["7078", "07078", "+7078", "70780", "", "0"];
        for host in hosts {
            for other in hosts {
                for time in times {
                    for port in ports {
                        for scheme in ["http://", "https://", ""] {
                            let worker = worker(
                                &format!("worker-{time}-{other}-{port}"),
                                host,
                                port.parse().unwrap_or(7078),
                                &format!("{scheme}{other}:{port}"),
                            );
                            assert_eq!(Packed::pack(&worker).unpack(), worker);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_usual_worker_is_packed() {
        let worker = WorkerInfo::example(70_000);
        let packed = Packed::pack(&worker);
        assert!(matches!(packed.host, Host::V4(_)) && matches!(packed.id, WorkerId::Started(_)));
        assert!(matches!(packed.web, WebAddress::Port(8081)) && packed.endpoint.is_none());
        assert_eq!(packed.unpack(), worker);
    }
}
