package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/quorate/quorate/images/extra"
)

// names are the image's programs, as images/master/files.sh has them.
var names = slices.Concat(extra.Programs, []string{"pause"})

// optional are programs in container images that a bake leaves out unless it is told otherwise.
var optional = []string{"coredns", "kube-proxy"}

// program is one of them: what the linker wrote into it, and the SHA-256 of its file.
type program struct {
	name, hash string
	info       *debug.BuildInfo
}

// version is its module's; the commit's where the module is this repository.
func (p program) version(commit string) string {
	if v := p.info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return commit
}

// ours says that the program's source is this repository.
func (p program) ours() bool { return p.info.Main.Path == "github.com/quorate/quorate" }

// stamp is the commit that the linker wrote into a program, as commit of images/master/lib.sh writes it; empty where it
// was built without.
func (p program) stamp() (commit string) {
	dirty := ""
	for _, s := range p.info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + dirty
}

// proven says whether each program of ours bears the image's commit. One that bears another is an error.
func proven(programs []program, commit string) (bool, error) {
	all := true
	for _, p := range programs {
		switch stamp := p.stamp(); {
		case !p.ours() || stamp == commit:
		case stamp == "":
			all = false
		default:
			return false, fmt.Errorf("%s was built from commit %s, and the image is of %s: build and bake with make image",
				p.name, stamp, commit)
		}
	}
	return all, nil
}

// source is the manifest's name of what a program was built from.
func (p program) source() string {
	switch module := p.info.Main.Path; {
	case p.ours():
		return "quorate"
	case strings.HasPrefix(module, "go.etcd.io/etcd/"):
		return "etcd"
	case module == "k8s.io/kubernetes":
		return "kubernetes"
	case module == coredns:
		return "coredns"
	default:
		return module
	}
}

// coredns is our own main of upstream's packages.
const coredns = "github.com/quorate/quorate/images/coredns"

// upstream is the version of what our main of CoreDNS was built from.
func (p program) upstream() string {
	for _, m := range p.info.Deps {
		if m.Path == "github.com/coredns/coredns" {
			return m.Version
		}
	}
	return ""
}

// asPinned refuses a program that was not built from its pin by its pin's toolchain: bin/ may hold an older build, of
// which the manifest says nothing true.
func asPinned(programs []program, pinned []pinnedModule) error {
	for _, p := range programs {
		i := slices.IndexFunc(pinned, func(m pinnedModule) bool { return m.name == p.source() })
		if i < 0 {
			return fmt.Errorf("%s was built from %s, which the manifest does not pin", p.name, p.source())
		}
		want, version := pinned[i], p.info.Main.Version
		switch {
		case p.ours():
			want.version = version // its pin is the commit: see proven
		case p.source() == "coredns":
			version = p.upstream()
		}
		if version != want.version || p.info.GoVersion != want.toolchain {
			return fmt.Errorf("%s was built from %s %s by %s, and the manifest pins %s by %s: build and bake with make image",
				p.name, want.name, version, p.info.GoVersion, want.version, want.toolchain)
		}
	}
	return nil
}

// ofArchitecture refuses a program that the image's machines do not run.
func ofArchitecture(programs []program, architecture string) error {
	for _, p := range programs {
		i := slices.IndexFunc(p.info.Settings, func(s debug.BuildSetting) bool { return s.Key == "GOARCH" })
		if i < 0 || p.info.Settings[i].Value != architecture {
			return fmt.Errorf("%s was not built for %s, of which the image is: build and bake with make image ARCH=%s",
				p.name, architecture, architecture)
		}
	}
	return nil
}

// modules are what it was built from, its own module left out. A module that was replaced is the one that replaced it.
func (p program) modules() (list []debug.Module) {
	for _, m := range p.info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, *m)
	}
	return list
}

func readPrograms(folder string) (list []program, err error) {
	for _, name := range slices.Concat(names, optional) {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && slices.Contains(optional, name) {
			continue
		}
		p := program{name: name}
		if p.info, err = buildinfo.ReadFile(path); err != nil {
			return nil, fmt.Errorf("read what %s was built from: %w", path, err)
		}
		if p.hash, err = hashOf(path); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// contains says whether a program is in the image.
func contains(programs []program, name string) bool {
	return slices.ContainsFunc(programs, func(p program) bool { return p.name == name })
}

func hashOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// file is one of the image's own.
type file struct{ name, hash string }

var sumLine = regexp.MustCompile(`^([0-9a-f]{64})  ([^/]+)$`)

// readSums reads what sha256sum wrote.
func readSums(path string) (list []file, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		m := sumLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return nil, fmt.Errorf("%s: %q is no line of sha256sum", path, line)
		}
		list = append(list, file{name: m[2], hash: m[1]})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	return list, nil
}
