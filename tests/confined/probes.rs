//! More probes of the same kinds as the suite's: each is tried by a program inside and must fail there. The table says in
//! which tiers; a row that the landlock tier cannot hold is named in the documentation (`sandbox-profiles/README.md`).

use super::*;

/// The tiers that hold a row.
#[derive(Clone, Copy, PartialEq)]
enum Held {
    Everywhere,
    /// Not in the landlock tier.
    Full,
}

/// A kind, the tiers, what is tried: shell, or system calls as Python's `S(number, ...)`.
const PROBES: &[(&str, Held, &[&str])] = &[
    (
        "kernel",
        Held::Everywhere,
        &[
            "head -c 64 /proc/kcore | grep -q ELF",
            "echo h > /proc/sysrq-trigger",
            "echo x > /proc/sys/kernel/hostname",
            "echo 5000 > /proc/sys/kernel/ns_last_pid",
            "echo ':x:M::zz::/bin/true:' > /proc/sys/fs/binfmt_misc/register",
            "echo mem > /sys/power/state",
            "mkdir /sys/fs/cgroup/x || mkdir /sys/fs/cgroup/unified/x",
            "echo -900 > /proc/self/oom_score_adj",
            "echo '0 0 1' > /proc/self/uid_map || echo allow > /proc/self/setgroups",
            "dd if=/proc/kmsg of=/dev/null bs=1 count=1 2>&1",
            "for f in core_pattern modprobe sysrq shmmax randomize_va_space; do (exec 3>>/proc/sys/kernel/$f) 2>/dev/null && exit 0; done; exit 1",
            "(exec 3>>/proc/irq/default_smp_affinity) || (exec 3>>/proc/sys/vm/drop_caches) || (exec 3>>/proc/sys/vm/memfd_noexec)",
        ],
    ),
    (
        "seen",
        Held::Full,
        &[
            "grep -q . /proc/keys",
            "ls -d /var/lib/* /srv/* /lost+found 2>/dev/null | grep -q .",
            "ls /sys/class/net /sys/block | grep -q .",
        ],
    ),
    (
        "supervisor",
        Held::Full,
        &[
            "tr '\\0' '\\n' < /proc/1/environ | grep -q .",
            "ls /proc/1/fd/ | grep -q .",
            "exec 3<> /proc/1/mem",
            "ls /proc/1/cwd/",
            "grep -q . /proc/1/maps",
            "S(101, 16, 1, 0, 0)",
            "S(101, 0x4206, 1, 0, 0)",
            "S(438, S(434, 1, 0), 0, 0)",
            "S(302, 1, 7, None, b(16))",
            "S(203, 1, 8, b(b'\\x01'))",
            "S(144, 1, 0, b(struct.pack('i', 0)))",
            "S(141, 0, 1, 19)",
            "S(141, 1, 1, 19)",
            "S(141, 2, 0, 19)",
            "S(251, 1, 1, 3 << 13)",
            "S(251, 3, 0, 3 << 13)",
        ],
    ),
    (
        "processes",
        Held::Everywhere,
        &[
            "S(312, 1, os.getpid(), 0, 0, 0)",
            "S(144, 0, 1, b(struct.pack('i', 50)))",
            "S(141, 0, 0, -20)",
            "S(251, 1, 0, 1 << 13)",
            "S(440, 0, 0, 0, 0, 0)",
            "S(256, 1, 64, b(8), b(8))",
            "ulimit -Hn 1000000 || ulimit -Hu unlimited || ulimit -Hf unlimited",
        ],
    ),
    (
        "namespaces and mounts",
        Held::Everywhere,
        &[
            "for f in 0x20000 0x2000000 0x4000000 0x8000000 0x10000000 0x20000000 0x40000000 0x80; do python3 -c \"import ctypes,sys;sys.exit(ctypes.CDLL(None).unshare($f)!=0)\" && exit 0; done; exit 1",
            "S(56, 0x10000011, 0, 0, 0, 0)",
            "S(435, b(struct.pack('Q', 0x10000000) + bytes(24) + struct.pack('Q', 17) + bytes(60)), 88)",
            "S(308, os.open('/proc/self/ns/net', 0), 0)",
            "S(430, b(b'tmpfs'), 0)",
            "S(428, -100, b(b'.'), 1)",
            "S(467, -100, b(b'.'), 1, b(32), 32)",
            "S(442, -100, b(b'.'), 0, b(32), 32)",
            "S(165, b(b'none'), b(b'/tmp'), b(b'tmpfs'), 0, None)",
            "S(166, b(b'/tmp'), 2)",
            "S(155, b(b'.'), b(b'.'))",
            "S(161, b(b'.'))",
            "S(457, b(24), b(512), 512, 0)",
        ],
    ),
    (
        "calls",
        Held::Everywhere,
        &[
            "S(425, 8, b(120))",
            "S(250, 0, -3, 1)",
            "S(248, b(b'user'), b(b'd'), b(b'x'), 1, -4)",
            "S(249, b(b'user'), b(b'd'), None, -4)",
            "S(321, 0, b(struct.pack('IIII', 1, 4, 4, 1) + bytes(60)), 72)",
            "S(298, b(struct.pack('IIQ', 1, 112, 0) + bytes(120)), 0, -1, -1, 0)",
            "S(323, 1)",
            "S(300, 0, 0)",
            "S(303, -100, b(b'.'), b(struct.pack('Ii', 128, 0) + bytes(128)), b(4), 0)",
            "S(304, os.open('.', 0), b(struct.pack('IiII', 8, 1, 2, 0)), 0)",
            "S(163, b(b'x'))",
            "S(103, 3, b(100), 100)",
            "S(169, 0xfee1dead, 672274793, 0, 0)",
            "S(175, b(100), 100, b(b''))",
            "S(172, 3)",
            "S(154, 0, b(100), 100)",
            "S(227, 0, b(16))",
            "S(159, b(208))",
            "S(170, b(b'x'), 1)",
            "S(179, 0x800002, 0, 0, 0)",
            "S(135, 0x0400000)",
            "S(447, 0)",
            "S(319, b(b'x'), 0x10)",
            "S(157, 35, 13, 0, 0, 0)",
        ],
    ),
    (
        "files",
        Held::Everywhere,
        &[
            "S(257, -100, b(b's1'), 0o101, 0o4755)",
            "S(437, -100, b(b's2'), b(struct.pack('QQQ', 0o101, 0o4755, 0)), 24)",
            "S(452, -100, b(b'f'), 0o4755, 0)",
            "S(257, -100, b(b'.'), 0o20200002, 0o4700)",
            "mkdir d2 && chmod g+s d2",
            "S(133, b(b'c'), 0o20666, 0x103)",
            "S(133, b(b'k'), 0o60666, 0x700)",
            "setfattr -n security.capability -v 0x0100000200200000000000000000000000000000 f || setfattr -n trusted.x -v 1 f",
            "chattr +i f || chattr +a f",
            "chown 12345 f",
            "ln $OUTSIDE/secret l",
            "exec 3< .; cd /proc/self/fd/3/.. && echo x > n",
            "grep -q . /etc/shadow || grep -q . /etc/sudoers || cat /etc/ssh/ssh_host_*",
        ],
    ),
    (
        "sockets",
        Held::Everywhere,
        &[
            "for f in 40 17 38 31 29 15 44 30 21 43 41 42 9 4 24 39 45 28; do python3 -c \"import socket;socket.socket($f,2,0)\" 2>/dev/null && exit 0; done; exit 1",
            "for p in 4 6 9 12 15 16 19 21; do python3 -c \"import socket;socket.socket(16,3,$p)\" 2>/dev/null && exit 0; done; exit 1",
            "for s in 2,3,1 2,2,1 2,1,262 2,1,132 2,2,136 2,6,33 10,3,58 2,10,0; do python3 -c \"import socket;socket.socket($s)\" 2>/dev/null && exit 0; done; exit 1",
            "ip link add d0 type dummy || ip route add 10.0.0.0/8 dev lo || ip addr add 10.9.9.9/8 dev lo",
        ],
    ),
    (
        "terminals",
        Held::Everywhere,
        &[
            "python3 -c \"import fcntl,os;fcntl.ioctl(os.open('/dev/tty',2),0x5412,b'x')\"",
            "python3 -c \"import fcntl,pty;fcntl.ioctl(pty.openpty()[1],0x5412,b'x')\"",
            "python3 -c \"import fcntl,pty;fcntl.ioctl(pty.openpty()[1],0x541c,b'\\3')\"",
            "python3 -c \"import fcntl,pty;fcntl.ioctl(pty.openpty()[0],0x541d)\"",
            "ls /dev/pts | grep -v ptmx | grep -q .",
        ],
    ),
    (
        "core dumps",
        Held::Everywhere,
        &[
            "bash -c 'ulimit -c unlimited; kill -SEGV $$'; ls core* | grep -q .",
            "python3 -c \"import resource as r;r.setrlimit(r.RLIMIT_CORE,(0,0));raise SystemExit(r.getrlimit(r.RLIMIT_CORE)==(1,1))\"",
        ],
    ),
];

#[test]
fn more_of_the_same_kinds_is_held_in_every_tier() {
    if !has("python3") || !cfg!(target_arch = "x86_64") {
        return;
    }
    for profile in ["workspace-write", "landlock-only"] {
        let Some(mut world) = World::new("workspace-write") else { return };
        world.profile = (**Profiles::built_in().unwrap().get(profile).unwrap()).clone();
        let full = profile == "workspace-write";
        fs::write(world.path("ws/f"), "x").unwrap();
        let mut script = String::from("export PATH=/usr/bin:/bin:/usr/sbin:/sbin\n");
        let mut count = 0;
        for (kind, _, probes) in PROBES.iter().filter(|(_, held, _)| full || *held == Held::Everywhere) {
            for probe in *probes {
                count += 1;
                let body = match probe.starts_with("S(") {
                    true => format!(
                        "python3 - <<'E'\nimport ctypes, os, struct, sys\nS = ctypes.CDLL(None).syscall\n\
                         b = ctypes.create_string_buffer\nsys.exit({probe} < 0)\nE"
                    ),
                    false => (*probe).to_owned(),
                };
                let name = format!("{kind}: {probe}").replace('\'', "\"");
                script.push_str(&format!("(\n{body}\n) >/dev/null 2>&1 </dev/null && echo '{name}'\n"));
            }
        }
        script.push_str("echo all");
        let said = world.works(&script);
        assert_eq!(said, "all\n", "{profile}: of {count} probes these worked");
        eprintln!("{profile}: {count} probes held");
    }
}
