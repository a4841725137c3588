// SPDX-License-Identifier: Apache-2.0 OR MIT
//! iceoryx2, publish and subscribe, between two sides: what `pair.h` measures of the programs in C, said
//! in the same words. Each side is pinned, copies in and out, and looks until something has come.

use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

const WARM_UP: u64 = 200;
const HELD: usize = 64;

fn pin(index: usize) {
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        let cores: Vec<usize> = (0..libc::CPU_SETSIZE as usize)
            .filter(|&c| libc::CPU_ISSET(c, &set))
            .collect();
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(cores[index], &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// A barrier of a service's own: a side with subscribers and publishers on both sides has met the other.
struct Side {
    publisher: iceoryx2::port::publisher::Publisher<ipc::Service, [u8], ()>,
    subscriber: iceoryx2::port::subscriber::Subscriber<ipc::Service, [u8], ()>,
    data: Vec<u8>,
    copy: Vec<u8>,
}

impl Side {
    fn new(base: &str, side: usize, size: usize) -> Result<Side, Failure> {
        let node = NodeBuilder::new().create::<ipc::Service>()?;
        let service = |to: usize| {
            node.service_builder(&format!("{base}.{to}").as_str().try_into().unwrap())
                .publish_subscribe::<[u8]>()
                .subscriber_max_buffer_size(HELD)
                .enable_safe_overflow(false)
                .max_publishers(1)
                .max_subscribers(1)
                .open_or_create()
        };
        let (inlet, outlet) = (service(side)?, service(1 - side)?);
        let subscriber = inlet.subscriber_builder().create()?;
        let publisher = outlet
            .publisher_builder()
            .initial_max_slice_len(size)
            .create()?;
        while inlet.dynamic_config().number_of_publishers() == 0
            || outlet.dynamic_config().number_of_subscribers() == 0
        {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        publisher.update_connections()?;
        Ok(Side {
            publisher,
            subscriber,
            data: vec![0; size],
            copy: vec![0; size],
        })
    }

    fn send(&mut self, number: u64) -> Result<(), Failure> {
        self.data[..8].copy_from_slice(&number.to_ne_bytes());
        let sample = self.publisher.loan_slice_uninit(self.data.len())?;
        sample.write_from_slice(&self.data).send()?;
        Ok(())
    }

    fn receive(&mut self) -> Result<u64, Failure> {
        loop {
            if let Some(sample) = self.subscriber.receive()? {
                self.copy.copy_from_slice(sample.payload());
                return Ok(u64::from_ne_bytes(self.copy[..8].try_into()?));
            }
            std::hint::spin_loop();
        }
    }
}

fn first(mut side: Side, to_and_fro: u64, one_way: u64) -> Result<(), Failure> {
    let mut sum = 0;
    for i in 0..WARM_UP {
        side.send(i)?;
        side.receive()?;
    }
    let start = Instant::now();
    for i in 1..=to_and_fro {
        side.send(i)?;
        sum += side.receive()?;
    }
    println!(
        "us {:.6}",
        start.elapsed().as_secs_f64() / to_and_fro as f64 / 2.0 * 1e6
    );
    assert_eq!(sum, to_and_fro * (to_and_fro + 1) / 2, "wrong sum");
    let start = Instant::now();
    for i in 1..=one_way {
        side.send(i)?;
    }
    assert_eq!(
        side.receive()?,
        one_way * (one_way + 1) / 2,
        "wrong sum of the other side"
    );
    let bytes = (one_way * side.data.len() as u64) as f64;
    println!(
        "mb_per_s {:.6}",
        bytes / start.elapsed().as_secs_f64() * 1e-6
    );
    Ok(())
}

fn second(mut side: Side, to_and_fro: u64, one_way: u64) -> Result<(), Failure> {
    for _ in 0..to_and_fro + WARM_UP {
        let number = side.receive()?;
        side.send(number)?;
    }
    let mut sum = 0;
    for _ in 0..one_way {
        sum += side.receive()?;
    }
    side.send(sum)
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().collect();
    if words.len() < 5 {
        return Err("usage: iceoryx2 processes|threads SIZE TO_AND_FRO ONE_WAY".into());
    }
    set_log_level(LogLevel::Error);
    let (size, to_and_fro, one_way): (usize, u64, u64) =
        (words[2].parse()?, words[3].parse()?, words[4].parse()?);
    if let Some(base) = words.get(5) {
        pin(1);
        return second(Side::new(base, 1, size)?, to_and_fro, one_way);
    }
    let base = format!("bench-{}", std::process::id());
    if words[1] == "threads" {
        let name = base.clone();
        let other = std::thread::spawn(move || {
            pin(1);
            second(Side::new(&name, 1, size).unwrap(), to_and_fro, one_way).unwrap();
        });
        std::thread::sleep(std::time::Duration::from_millis(1));
        pin(0);
        first(Side::new(&base, 0, size)?, to_and_fro, one_way)?;
        other.join().map_err(|_| "the other side has failed")?;
        return Ok(());
    }
    let mut other = std::process::Command::new(std::env::current_exe()?)
        .args(&words[1..5])
        .arg(&base)
        .spawn()?;
    pin(0);
    first(Side::new(&base, 0, size)?, to_and_fro, one_way)?;
    if other.wait()?.success() {
        Ok(())
    } else {
        Err("the other side has failed".into())
    }
}
