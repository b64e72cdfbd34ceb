package image

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// makeDebian makes a Debian without a master's packages in /out/root, of the manifest's packages, which stay its
// archive.
const makeDebian = `export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mmdebstrap --quiet --variant=apt --format=directory --include=usr-is-merged,systemd-sysv,udev,procps,iproute2 \
  --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr '' /out/root 'deb [trusted=yes] copy:/debs ./'`

// update gives an archive newer versions of the libraries that pinned packages want in one version alone.
const update = `debs=$1 tree=$2
shift 2
for name; do
  rm -rf "$tree"
  dpkg-deb -R "$debs/$name.deb" "$tree"
  sed -i 's/^Version: .*/&.1/' "$tree/DEBIAN/control"
  deb=$name-newer.deb
  dpkg-deb -Znone -b "$tree" "$debs/$deb"
  dpkg-deb -f "$debs/$deb" >>"$debs/Packages"
  printf 'Filename: ./%s\nSize: %d\nSHA256: %s\n\n' "$deb" "$(stat -c %s "$debs/$deb")" \
    "$(sha256sum "$debs/$deb" | cut -d' ' -f1)" >>"$debs/Packages"
done`

var exactly = []string{"libcurl4", "libnftables1", "libxtables12", "libip4tc2", "libip6tc2"}

// install runs install.sh in that tree, twice, without a network: its archive is /debs. It has no git, and one of the
// libraries in its newer version.
const install = `root=$1 repository=$2 cache=$3 debs=$4 commit=$5 extra=$6
mkdir -p "$root"/{repository,cache,debs,extra}
if [[ -n $extra ]]; then mount --bind "$extra" "$root/extra"; fi
mount --bind "$repository" "$root/repository"
mount --bind "$cache" "$root/cache"
mount --bind "$debs" "$root/debs"
mount -t proc proc "$root/proc"
mount --bind /dev/null "$root/dev/null"
in_root() {
  env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "${@:2}" \
    chroot "$root" bash -euc "$1"
}
[[ -e $root/usr/bin/curl ]] || in_root 'apt-get update -q; apt-get install -q -y --no-install-recommends libcurl4'
umask 077
for run in first second; do
  in_root '/repository/images/install.sh /repository/bin' QUORATE_CACHE=/cache QUORATE_COMMIT="$commit" \
    QUORATE_EXTRA="${extra:+/extra}"
done`

var ourUnits = []string{"quorate.service", "kubelet.service", "var-lib-quorate.mount", "quorate-data-disk.service",
	"quorate-growfs.service", "quorate-data-growfs.service", "quorate-hostname.service", "quorate-pause-image.service",
	"quorate-pause-image.timer",
	"quorate-addon-images.service", "quorate-addon-images.timer", "chrony-wait.service", "containerd.service"}

// files are the paths of what a tree has below a folder, each with its mode and what it holds; a link with its target.
func files(t *testing.T, root, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.Type()&os.ModeSymlink != 0 {
			found[name], err = os.Readlink(path)
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found[name] = info.Mode().String()
		if !entry.IsDir() {
			found[name] += " " + strings.Fields(run(t, "sha256sum", path))[0]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// versions are those of a tree's installed packages.
func versions(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, m := range regexp.MustCompile(
		`(?m)^Package: (\S+)\nStatus: install ok installed\n(?:.+\n)*?Version: (\S+)$`).
		FindAllStringSubmatch(read(t, filepath.Join(root, "var/lib/dpkg/status")), -1) {
		found[m[1]] = m[2]
	}
	return found
}

// A Debian that install.sh made a master has what a baked image has: packages, files, programs, enabled units.
func TestInstallMakesARunningDebianTheSameMaster(t *testing.T) {
	image := baked(t)
	if arch := architecture(t, image); arch != runtime.GOARCH {
		t.Skipf("a Debian of %s does not run here by itself", arch)
	}
	dir := scratch(t, image)
	bakedRoot, root := filepath.Join(dir, "baked"), filepath.Join(dir, "work/out/root")
	run(t, "mkdir", bakedRoot)
	run(t, "tar", "-C", bakedRoot, "-xpf", filepath.Join(image, "root.tar"))
	debs := filepath.Join(dir, "work/debs")
	run(t, master+"fetch.sh", "image", debs)
	run(t, "mkdir", "-p", filepath.Join(dir, "work/in"))
	run(t, master+"in_tools.sh", strings.TrimSpace(run(t, master+"tools.sh")), filepath.Join(dir, "work"),
		"/bin/bash", "-euc", makeDebian)
	run(t, append([]string{"bash", "-euc", update, "bash", debs, filepath.Join(dir, "library")}, exactly...)...)
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cache := strings.TrimSpace(run(t, "sh", "-c", `echo "${QUORATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quorate}"`))
	commit := strings.TrimSpace(run(t, "bash", "-c", "cd ../.. && . images/master/lib.sh && commit"))
	if out := run(t, "chroot", bakedRoot, "quorate", "version", "--image"); !strings.Contains(out,
		"commit "+commit+",") {
		t.Errorf("the image is of commit %s; it says %s", commit, out)
	}
	makeMaster := func(extra string) {
		t.Log(run(t, "unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child",
			"bash", "-euc", install, "bash", root, repository, cache, debs, commit, extra))
	}
	makeMaster(os.Getenv("QUORATE_EXTRA"))

	units := append([]string{"unshare", "-m", "-p", "-f", "chroot", bakedRoot, "systemd-analyze", "verify",
		"--man=no"}, ourUnits...)
	if remarks := run(t, units...); remarks != "" {
		t.Errorf("systemd remarks on the image's units: %s", remarks)
	}
	there := versions(t, root)
	for _, line := range words(t, master+"packages") {
		if want := versions(t, bakedRoot)[line[1]]; line[0] == "master" && (want == "" || there[line[1]] != want) {
			t.Errorf("%s is %q, in the baked image %q", line[1], there[line[1]], want)
		}
	}
	for _, name := range exactly {
		if want := versions(t, bakedRoot)[name]; want == "" || there[name] != want {
			t.Errorf("%s is %q, in the baked image %q", name, there[name], want)
		}
	}
	for _, folder := range []string{"usr/local/bin", "usr/lib/quorate", "usr/share/quorate"} {
		got, want := files(t, root, folder), files(t, bakedRoot, folder)
		for name, content := range want {
			if got[name] != content {
				t.Errorf("%s is %q, in the baked image %q", name, got[name], content)
			}
		}
		if len(want) == 0 || len(got) != len(want) {
			t.Errorf("%s has %d files, in the baked image %d", folder, len(got), len(want))
		}
	}
	for name, mode := range files(t, master+"files/master", ".") {
		if strings.HasPrefix(mode, "d") {
			continue
		}
		if got, want := files(t, root, name)[name], files(t, bakedRoot, name)[name]; got != want || want == "" {
			t.Errorf("%s is %q, in the baked image %q", name, got, want)
		}
	}
	const wants = "etc/systemd/system"
	got, want := files(t, root, wants), files(t, bakedRoot, wants)
	for _, name := range []string{"containerd.service", "chrony.service", "chrony-wait.service", "kubelet.service",
		"quorate.service", "quorate-hostname.service", "quorate-pause-image.timer", "quorate-addon-images.timer",
		"quorate-data-growfs.service"} {
		target := "multi-user.target"
		if strings.HasSuffix(name, ".timer") {
			target = "timers.target"
		}
		if name == "quorate-data-growfs.service" {
			target = "var-lib-quorate.mount"
		}
		name = filepath.Join(wants, target+".wants", name)
		if want[name] == "" || got[name] != want[name] {
			t.Errorf("%s leads to %q, in the baked image to %q", name, got[name], want[name])
		}
	}
	if _, err := os.Stat(filepath.Join(root, "usr/sbin/policy-rc.d")); !os.IsNotExist(err) {
		t.Errorf("install.sh leaves its policy-rc.d: %v", err)
	}
	if there["systemd-timesyncd"] != "" {
		t.Error("two daemons set the clock")
	}

	site := filepath.Join(dir, "site")
	run(t, "sh", "-euc", `umask 077; mkdir -p "$1/files/opt/site" "$1/files/etc/site"; cd "$1/files"
echo x >etc/site/x; echo '#!/bin/sh' >opt/site/run; chmod 0700 opt/site/run`, "sh", site)
	makeMaster(site)
	for name, want := range map[string]string{"etc/site": "drwxr-xr-x", "etc/site/x": "-rw-r--r--",
		"opt/site/run": "-rwxr-xr-x"} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().String(); got != want {
			t.Errorf("a site's /%s has the mode %s under another umask, want %s", name, got, want)
		}
	}
}
