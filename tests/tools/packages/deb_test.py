#!/usr/bin/env python3
"""The .deb: built, looked at, installed by dpkg into an overlay of this system, used there, and removed.

usage: deb_test.py BUILD SOURCE CPACK [unittest arguments]
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import cases
import patience
import roots

BUILD, SOURCE, CPACK = [os.path.abspath(sys.argv.pop(1)) for _ in range(3)] if len(sys.argv) > 3 else sys.exit(__doc__)


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=patience.seconds(600), **options).stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for tool in ("dpkg-deb", "dpkg-shlibdeps"):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"{tool} is not installed (dpkg, dpkg-dev)")
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        output(CPACK, "-G", "DEB", "-B", cls.folder, cwd=BUILD)
        (cls.package,) = glob.glob(os.path.join(cls.folder, "memopt_*.deb"))

    def test_control_file(self):
        fields = dict(re.findall(r"(?m)^ ?([A-Z][\w-]+): (.*)$", output("dpkg-deb", "--field", self.package)))
        self.assertEqual((fields["Package"], fields["Section"]), ("memopt", "utils"))
        self.assertRegex(fields["Version"], r"^\d+\.\d+\.\d+$")
        self.assertRegex(fields["Depends"], r"\blibc6 \(>= 2\.\d+\)")
        self.assertEqual(fields["Recommends"], "libunwind8")
        self.assertLess(int(fields["Installed-Size"]), 80 * 1024)

    def test_files(self):
        listed = re.findall(r"(?m) \./(\S*[^/\s])(?: -> .*)?$", output("dpkg-deb", "--contents", self.package))
        multiarch = output("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
        for wanted in ("usr/bin/memoptctl", "usr/bin/memoptd", f"usr/lib/{multiarch}/libmemopt.so", f"usr/lib/{multiarch}/memopt/cudasim/lib/libcuda.so.1",
                       "usr/lib/systemd/user/memoptd.service", "usr/share/man/man1/memoptctl.1.gz", "usr/share/doc/memopt/copyright",
                       "usr/share/doc/memopt/changelog.gz", "usr/share/bash-completion/completions/memoptctl"):
            self.assertIn(wanted, listed)
        self.assertEqual([path for path in listed if not path.startswith("usr/")], [])

    def test_lintian(self):
        if not shutil.which("lintian"):
            self.skipTest("lintian is not installed")
        # The address is set by who builds it (MEMOPT_MAINTAINER).
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", "--suppress-tags",
                               "bogus-mail-host,bogus-mail-host-in-debian-changelog", self.package], capture_output=True, text=True,
                              timeout=patience.seconds(600))
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_installed_used_and_removed(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount an overlay and install into it")
        multiarch = output("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
        work = os.path.join(self.folder, "work")
        roots.copy_workload(BUILD, work)
        script = os.path.join(self.folder, "script")
        # The upper layer of an overlay may not be on an overlay: a file system of its own.
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"""set -eu
mkdir -p {self.folder}/layers && mount -t tmpfs none {self.folder}/layers
cd {self.folder}/layers && mkdir upper scratch root
mount -t overlay -o lowerdir=/,upperdir=upper,workdir=scratch none root || {{ echo "no overlay"; exit 77; }}
cp {self.package} root/tmp/memopt.deb && mkdir -p root/tmp/memopt-work && cp -r {work}/. root/tmp/memopt-work
mount -t proc none root/proc && mount --rbind /dev root/dev && mount -t sysfs none root/sys
for hidden in {BUILD} {SOURCE}; do mount -t tmpfs none root$hidden; done
cat >root/tmp/inside <<'INSIDE'
set -eu
find /usr /etc -xdev | sort >/tmp/before
dpkg -i /tmp/memopt.deb >/tmp/dpkg.log 2>&1 || {{ cat /tmp/dpkg.log; exit 1; }}
test -L /usr/lib/{multiarch}/libmemopt.so
cd /tmp/memopt-work
export MEMOPT_PLANNER_NAME=deb-$$ MEMOPT_SYNC_PLAN={patience.WAIT} CUDASIM_KERNELS=/tmp/memopt-work/kernels:/usr/lib/{multiarch}/memopt/cudasim/kernels
echo "== run"; memoptctl run --sim a100-40g -- ./digits_cnn --epochs 4 2>&1
echo "== preload"
CUDASIM_DEVICE=a100-40g LD_LIBRARY_PATH=/usr/lib/{multiarch}/memopt/cudasim/lib LD_PRELOAD=libmemopt.so ./digits_cnn --epochs 4 2>&1
echo "== which"; memoptctl run -- sh -c 'echo $LD_PRELOAD'; ! man -w memoptctl || man -w memoptctl
echo "== removed"; dpkg -r memopt >/tmp/dpkg.log 2>&1
find /usr /etc -xdev | sort >/tmp/after
diff /tmp/before /tmp/after | grep -v -e ld.so.cache || true
INSIDE
chroot root bash /tmp/inside
""")
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", script], capture_output=True, text=True,
                              timeout=patience.seconds(600))
        if done.returncode == 77:
            self.skipTest("no overlay can be mounted here")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        parts = dict(part.split("\n", 1) for part in done.stdout.split("== ")[1:])
        self.assertIn("memopt: plan live at iteration", parts["run"])
        self.assertIn("memopt: plan live at iteration", parts["preload"], "without a path, by the loader's own folders")
        self.assertIn(f"/usr/lib/{multiarch}/libmemopt.so", parts["which"])
        self.assertEqual(parts["removed"].strip(), "", "what removing it has left")


if __name__ == "__main__":
    cases.main()
