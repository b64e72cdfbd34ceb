package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/quorate/quorate/images/extra"
)

const (
	zeros = "0000000000000000000000000000000000000000000000000000000000000000"
	ones  = "1111111111111111111111111111111111111111111111111111111111111111"
	of40  = "0123456789012345678901234567890123456789"
)

// write makes a folder's files.
func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// small makes the sources of a small image, all of whose programs are this test.
func small(t *testing.T) sources {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"manifest": "# pins\narchitecture " + runtime.GOARCH + "\nepoch 1795383971\nprogram quorate etcd-v3.7.3 " +
			runtime.Version() + " " + zeros +
			"\ndeb image libstdc++6 1:12.2+b1~x amd64 " + ones + "\ndeb tools tar 1.35 amd64 " + ones +
			"\ndeb tools systemd-boot-efi 257.9-1 amd64 " + zeros + "\n",
		"packages":         "suite system bookworm\nsuite master bookworm\nsuite tools trixie\n",
		"image/SHA256SUMS": ones + "  disk.raw\n",
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "programs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(dir, "programs", name)); err != nil {
			t.Fatal(err)
		}
	}
	return sources{manifest: filepath.Join(dir, "manifest"), packages: filepath.Join(dir, "packages"),
		programs: filepath.Join(dir, "programs"), image: filepath.Join(dir, "image"), commit: of40}
}

func output(t *testing.T, s sources, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.image, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAnImagesPartsAreAllInItsBill(t *testing.T) {
	s := small(t)
	if err := describe(s, nil); err != nil {
		t.Fatal(err)
	}
	doc, err := spdxjson.Read(bytes.NewReader(output(t, s, "sbom.spdx.json")))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	parts := map[string]string{}
	for _, p := range doc.Packages {
		url := p.PackageExternalReferences[0].Locator
		if parts[url] == p.PackageName {
			t.Errorf("%s stands twice", url)
		}
		parts[url] = p.PackageName
		if p.PackageName == "quorate-master" && (len(p.PackageChecksums) != 1 || p.PackageChecksums[0].Value != ones ||
			p.PackageFileName != "disk.raw") {
			t.Errorf("it is of the disk %s %v", p.PackageFileName, p.PackageChecksums)
		}
		if p.PackageName == "libstdc++6" && (len(p.PackageChecksums) != 1 || p.PackageChecksums[0].Value != ones) {
			t.Errorf("the checksums of libstdc++6 are %v", p.PackageChecksums)
		}
	}
	for _, url := range []string{
		"pkg:generic/quorate-master@" + of40 + "?arch=" + runtime.GOARCH,
		"pkg:deb/debian/libstdc%2B%2B6@1:12.2%2Bb1~x?arch=amd64&distro=bookworm",
		"pkg:deb/debian/systemd-boot-efi@257.9-1?arch=amd64&distro=trixie", // its stub is in boot.efi
		"pkg:golang/github.com/spdx/tools-golang@v0.5.7",
	} {
		if parts[url] == "" {
			t.Errorf("it lacks %s; it has %v", url, parts)
		}
	}
	for url := range parts {
		if strings.Contains(url, "debian/tar") {
			t.Errorf("a tool of the bake is in it: %s", url)
		}
	}
	var contained, needed int
	for _, r := range doc.Relationships {
		switch r.Relationship {
		case "CONTAINS":
			contained++
		case "DEPENDS_ON":
			needed++
		}
	}
	if contained != 2+len(names) || needed < len(names) {
		t.Errorf("the image contains %d parts, which depend on %d", contained, needed)
	}
	if doc.CreationInfo.Created != "2026-11-22T21:46:11Z" {
		t.Errorf("created at %s", doc.CreationInfo.Created)
	}
}

// The programs of the example add-ons are in the bill of an image that has them, and in no other's.
func TestAnImageWithTheExamplesSaysSo(t *testing.T) {
	for _, with := range []bool{false, true} {
		s := small(t)
		text, err := os.ReadFile(s.manifest)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Dir(s.manifest),
			map[string]string{"manifest": string(text) + "program coredns v1.14.7 go1.26.11 " + ones + "\n"})
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range optional {
			if with {
				if err := os.Symlink(self, filepath.Join(s.programs, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := describe(s, nil); err != nil {
			t.Fatal(err)
		}
		bill := strings.Contains(string(output(t, s, "sbom.spdx.json")), `"name": "kube-proxy"`)
		statement := strings.Contains(string(output(t, s, "provenance.json")), "go.mod and go.sum of coredns")
		if bill != with || statement != with {
			t.Errorf("with the examples %t; the bill has kube-proxy: %t, the provenance has coredns: %t", with, bill,
				statement)
		}
	}
}

func TestTheProvenanceNamesSourcesPackagesAndTools(t *testing.T) {
	s := small(t)
	if err := describe(s, nil); err != nil {
		t.Fatal(err)
	}
	type resource struct {
		Name, URI string
		Digest    map[string]string
	}
	var statement struct {
		Type      string `json:"_type"`
		Subject   []resource
		Predicate struct {
			BuildDefinition struct{ ResolvedDependencies []resource }
			RunDetails      struct {
				Builder struct{ BuilderDependencies []resource }
			}
		}
	}
	if err := json.Unmarshal(output(t, s, "provenance.json"), &statement); err != nil {
		t.Fatal(err)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || len(statement.Subject) != 1 ||
		statement.Subject[0].Name != "disk.raw" || statement.Subject[0].Digest["sha256"] != ones {
		t.Errorf("it is about %+v", statement.Subject)
	}
	made := statement.Predicate.BuildDefinition.ResolvedDependencies
	if len(made) != 3 || made[0].Digest["gitCommit"] != of40 || made[1].Digest["sha256"] != zeros ||
		made[2].Name != "libstdc++6" {
		t.Errorf("made of %+v", made)
	}
	if tools := statement.Predicate.RunDetails.Builder.BuilderDependencies; len(tools) != 2 || tools[0].Name != "tar" {
		t.Errorf("made by %+v", tools)
	}
}

// A bake takes the programs that lie there. Those that the linker has stamped cannot be of another commit.
func TestProgramsOfAnotherCommitAreRefused(t *testing.T) {
	of := func(path string, settings ...debug.BuildSetting) program {
		return program{name: "x", info: &debug.BuildInfo{Main: debug.Module{Path: path}, Settings: settings}}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: of40}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	const ours = "github.com/quorate/quorate"
	for _, c := range []struct {
		name, commit string
		program      program
		proven       bool
		fail         string
	}{
		{"the same commit", of40, of(ours, revision), true, ""},
		{"the same, changed", of40 + "-dirty", of(ours, revision, modified), true, ""},
		{"no stamp", of40, of(ours), false, ""},
		{"another's program", of40, of("go.etcd.io/etcd"), true, ""},
		{"another commit", zeros[:40], of(ours, revision), false, "x was built from commit " + of40},
		{"changed files, and a clean image", of40, of(ours, revision, modified), false, "-dirty, and the image is of"},
		{"a clean program, and changed files", of40 + "-dirty", of(ours, revision), false, "the image is of " + of40 + "-dirty"},
	} {
		proven, err := proven([]program{c.program}, c.commit)
		if proven != c.proven || (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%s: proven %t, %v; want %t, %q", c.name, proven, err, c.proven, c.fail)
		}
	}
	s := small(t) // a test is built without a stamp
	if err := describe(s, nil); err != nil {
		t.Fatal(err)
	}
	if text := string(output(t, s, "provenance.json")); !strings.Contains(text, "by the word of who baked") {
		t.Errorf("the provenance of programs without a stamp: %s", text)
	}
}

// An image of another architecture lies in a folder of its own, and so do its programs.
func TestProgramsOfAnotherArchitectureAreRefused(t *testing.T) {
	s := small(t)
	pins := strings.Replace(string(output(t, s, "../manifest")), runtime.GOARCH+"\n", "riscv64\n", 1)
	write(t, filepath.Dir(s.manifest), map[string]string{"manifest": pins})
	if err := describe(s, nil); err == nil || !strings.Contains(err.Error(), "was not built for riscv64") {
		t.Errorf("got %v", err)
	}
}

func TestAnImagesArchitectureIsNamed(t *testing.T) {
	s := small(t)
	if err := describe(s, nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"sbom.spdx.json":  "pkg:generic/quorate-master@" + of40 + "?arch=" + runtime.GOARCH,
		"provenance.json": `"architecture": "` + runtime.GOARCH + `"`,
	} {
		if text := string(output(t, s, name)); !strings.Contains(text, want) {
			t.Errorf("%s lacks %s: %s", name, want, text)
		}
	}
	without := strings.Replace(string(output(t, s, "../manifest")), "architecture "+runtime.GOARCH+"\n", "", 1)
	write(t, filepath.Dir(s.manifest), map[string]string{"manifest": without})
	if p, err := readPins(s.manifest, s.packages); err != nil || p.architecture != "amd64" {
		t.Errorf("a manifest that names no architecture is of %s, %v", p.architecture, err)
	}
}

// What a site adds is in the bill and in the provenance, by name and hash.
func TestWhatASiteAddsIsNamed(t *testing.T) {
	s := small(t)
	s.extra = t.TempDir()
	if err := os.MkdirAll(filepath.Join(filepath.Dir(s.manifest), "files/master"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(filepath.Dir(s.manifest), "files/system"), 0o700); err != nil {
		t.Fatal(err)
	}
	debs := []string{"deb image libstdc++6 1:12.2+b1~x amd64 " + ones}
	write(t, s.extra, map[string]string{"packages": "htop\n", "files/etc/site.conf": "x\n",
		"manifest": "of " + extra.PinsHash(debs) + "\ndeb image htop 3.2.2-2 amd64 " + zeros + "\n"})
	if err := describe(s, nil); err != nil {
		t.Fatal(err)
	}
	bill, statement := string(output(t, s, "sbom.spdx.json")), string(output(t, s, "provenance.json"))
	for _, want := range []string{"pkg:deb/htop@3.2.2-2?arch=amd64", zeros, `"/etc/site.conf"`} {
		if !strings.Contains(bill, want) {
			t.Errorf("the bill lacks %s", want)
		}
	}
	for _, want := range []string{"pkg:deb/htop@3.2.2-2?arch=amd64", "what a site adds", `"extra": "sha256:`} {
		if !strings.Contains(statement, want) {
			t.Errorf("the provenance lacks %s", want)
		}
	}
	write(t, s.extra, map[string]string{"packages": "htop\ntree\n"})
	if err := describe(s, nil); err == nil || !strings.Contains(err.Error(), "packages:2: found tree") {
		t.Errorf("a package without a pin: %v", err)
	}
}

// A purl has no + but an escaped one, and no folder where the program is its module.
func TestAProgramIsNamedByItsModuleAndFolder(t *testing.T) {
	for _, c := range []struct{ module, version, folder, want string }{
		{"github.com/Org/mod/v2", "v2.0.1+incompatible", "", "pkg:golang/github.com/Org/mod/v2@v2.0.1%2Bincompatible"},
		{"k8s.io/kubernetes", "v1.36.3", "/cmd/kubelet", "pkg:golang/k8s.io/kubernetes@v1.36.3#cmd/kubelet"},
		{"stdlib", "v1.27.4", "", "pkg:golang/stdlib@v1.27.4"},
	} {
		if got := goURL(c.module, c.version, c.folder); got != c.want {
			t.Errorf("%s %s %s: %s, want %s", c.module, c.version, c.folder, got, c.want)
		}
	}
}

// The manifest is the provenance's word for what the programs were built from.
func TestProgramsOfAnotherPinAreRefused(t *testing.T) {
	pinned := []pinnedModule{{name: "quorate", version: "etcd-v3.7.3", toolchain: "go1.27.4"},
		{name: "kubernetes", version: "v1.36.3", toolchain: "go1.26.11"},
		{name: "etcd", version: "v3.7.3", toolchain: "go1.26.11"},
		{name: "coredns", version: "v1.14.7", toolchain: "go1.26.11"}}
	for _, c := range []struct{ module, version, toolchain, fail string }{
		{"github.com/quorate/quorate", "(devel)", "go1.27.4", ""},
		{"github.com/quorate/quorate", "(devel)", "go1.27.3", "x was built from quorate (devel) by go1.27.3"},
		{"k8s.io/kubernetes", "v1.36.3", "go1.26.11", ""},
		{"k8s.io/kubernetes", "v1.36.2", "go1.26.11", "from kubernetes v1.36.2 by go1.26.11, and the manifest pins v1.36.3"},
		{"go.etcd.io/etcd/etcdctl/v3", "v3.7.3", "go1.26.11", ""},
		{"go.etcd.io/etcd/etcdctl/v3", "v3.7.2", "go1.26.11", "x was built from etcd v3.7.2"},
		{"example.com/x", "v1.0.0", "go1.26.11", "x was built from example.com/x, which the manifest does not pin"},
		{coredns, "v1.14.7", "go1.26.11", ""},
		{coredns, "v1.14.6", "go1.26.11", "x was built from coredns v1.14.6"},
	} {
		p := program{name: "x", info: &debug.BuildInfo{GoVersion: c.toolchain,
			Main: debug.Module{Path: c.module, Version: c.version}}}
		if c.module == coredns { // our own main of upstream's packages
			p.info.Main.Version = "(devel)"
			p.info.Deps = []*debug.Module{{Path: "github.com/coredns/coredns", Version: c.version}}
		}
		err := asPinned([]program{p}, pinned)
		if (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%s %s by %s: %v, want %q", c.module, c.version, c.toolchain, err, c.fail)
		}
	}
}

// protojson varies its white space from one build of a program to the next.
func TestTheSameImageHasTheSameDescription(t *testing.T) {
	s := small(t)
	if err := describe(s, nil); err != nil {
		t.Fatal(err)
	}
	bill, statement := output(t, s, "sbom.spdx.json"), output(t, s, "provenance.json")
	if err := describe(s, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bill, output(t, s, "sbom.spdx.json")) || !bytes.Equal(statement, output(t, s, "provenance.json")) {
		t.Error("the second differs from the first")
	}
	var compact, indented bytes.Buffer
	if err := json.Compact(&compact, statement); err != nil {
		t.Fatal(err)
	}
	if err := json.Indent(&indented, compact.Bytes(), "", " "); err != nil {
		t.Fatal(err)
	}
	if indented.String()+"\n" != string(statement) {
		t.Error("the statement's white space is protojson's own")
	}
}

func TestWhatCannotBeDescribedIsNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(s *sources)
		want  string
	}{
		{"a line of the manifest", func(s *sources) { write(t, "/", map[string]string{s.manifest: "deb image x\n"}) },
			`manifest: "deb image x": want`},
		{"a manifest of nothing", func(s *sources) { write(t, "/", map[string]string{s.manifest: "epoch 1\n"}) },
			"deb image and deb tools are needed"},
		{"no suites", func(s *sources) { write(t, "/", map[string]string{s.packages: "master curl\n"}) },
			"the suites of system and tools"},
		{"a program that is absent", func(s *sources) { os.Remove(filepath.Join(s.programs, "kubelet")) }, "kubelet"},
		{"a program that is no Go program", func(s *sources) {
			os.Remove(filepath.Join(s.programs, "pause"))
			write(t, s.programs, map[string]string{"pause": "#!/bin/sh\n"})
		}, "pause: "},
		{"sums that are none", func(s *sources) { write(t, s.image, map[string]string{"SHA256SUMS": "x\n"}) },
			"is no line of sha256sum"},
		{"no loader", func(s *sources) {
			text, err := os.ReadFile(s.manifest)
			if err != nil {
				t.Fatal(err)
			}
			write(t, "/", map[string]string{s.manifest: strings.ReplaceAll(string(text), "systemd-boot-efi", "x")})
		}, "tools have no systemd-boot-efi"},
		{"no disk", func(s *sources) { write(t, s.image, map[string]string{"SHA256SUMS": ones + "  root.tar\n"}) },
			"SHA256SUMS has no disk.raw"},
		{"programs of another toolchain", func(s *sources) {
			text, err := os.ReadFile(s.manifest)
			if err != nil {
				t.Fatal(err)
			}
			write(t, "/", map[string]string{s.manifest: strings.ReplaceAll(string(text), runtime.Version(), "go1.0")})
		}, "the manifest pins"},
		{"no commit", func(s *sources) { s.commit = "" }, "-commit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := small(t)
			c.spoil(&s)
			if err := describe(s, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
