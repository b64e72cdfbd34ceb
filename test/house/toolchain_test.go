package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// toolchainLine names a whole version: without a patch, what is built depends on the machine.
var toolchainLine = regexp.MustCompile(`(?m)^toolchain (go\d+\.\d+\.\d+)$`)

func TestEveryModulePinsItsToolchain(t *testing.T) {
	files, err := filepath.Glob("../../images/*/go.mod")
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, path := range append(files, "../../go.mod", "../alerts/go.mod", "../terraform/go.mod") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !toolchainLine.Match(data) {
			t.Errorf("%s has no line: toolchain goX.Y.Z", path)
		}
	}
}

// fakeGo says a version, and builds a file that says with which toolchain; as go build -v does, it names a package.
const fakeGo = `#!/bin/sh
case "$1" in
version) echo "go version $FAKE_VERSION" ;;
list) echo v1.2.3 ;;
build) echo example.com/m >&2; for a; do case "$a" in */) echo "$GOTOOLCHAIN" >"$a/program" ;; esac; done ;;
esac
`

// A patch of Go repairs the standard library: programs that another toolchain built must not be taken from the cache.
func TestTheCacheOfImagesKnowsTheToolchain(t *testing.T) {
	dir := t.TempDir()
	script, err := os.ReadFile("../../images/build.sh")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"images/build.sh": string(script), "bin/go": fakeGo, "images/etcd/go.sum": "",
		"images/etcd/go.mod": "module m\n\ngo 1.26.0\n\ntoolchain go1.26.4\n"}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	build := func(version string) ([]byte, error) {
		cmd := exec.Command(filepath.Join(dir, "images/build.sh"), "etcd", filepath.Join(dir, "out"))
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "FAKE_VERSION="+version,
			"QUORATE_CACHE="+filepath.Join(dir, "cache"))
		return cmd.CombinedOutput()
	}
	for n, version := range []string{"go1.26.4", "go1.26.4", "go1.26.5"} {
		out, err := build(version)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if said := strings.Contains(string(out), "etcd: 1 of 1 packages compiled"); said == (n == 1) {
			t.Errorf("build %d, with %s, says how far it is: %v\n%s", n+1, version, said, out)
		}
		built, err := filepath.Glob(filepath.Join(dir, "cache/images/etcd-*"))
		if want := 1 + n/2; err != nil || len(built) != want {
			t.Errorf("after a build with %s the cache holds %v, want %d", version, built, want)
		}
	}
	if with, err := os.ReadFile(filepath.Join(dir, "out/program")); err != nil || string(with) != "go1.26.4\n" {
		t.Errorf("built with the toolchain %q, want the one of go.mod: %v", with, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "images/etcd/go.mod"), []byte("module m\n\ngo 1.26.0\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := build("go1.26.4"); err == nil {
		t.Errorf("a module without a toolchain is built: %s", out)
	}
}
