package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/package-url/packageurl-go"

	"github.com/quorate/quorate/images/extra"
)

// pins are what images/master/manifest says.
type pins struct {
	// architecture is Debian's name, and Go's, of what the image's machines are.
	architecture string
	// epoch is the time that all files of an image bear.
	epoch    time.Time
	programs []pinnedModule
	// image are the packages of the image, tools those that bake it.
	image, tools []deb
	// extra is what a site adds to the image.
	extra extra.Extra
	// suites are Debian's releases, by role: image, tools.
	suites map[string]string
}

// pinnedModule is a module that programs are built from. sources is the SHA-256 of its go.mod and go.sum.
type pinnedModule struct{ name, version, toolchain, sources string }

// deb is a package of Debian. hash is the SHA-256 of its file.
type deb struct{ name, version, architecture, hash string }

// loader is the one package of tools whose code is in the image, too: boot.efi begins with its stub.
func (p pins) loader() (deb, error) {
	const name = "systemd-boot-efi"
	for _, d := range p.tools {
		if d.name == name {
			return d, nil
		}
	}
	return deb{}, fmt.Errorf("the manifest's tools have no %s, with whose stub boot.efi begins", name)
}

// url is the package's purl.
func (d deb) url(suite string) string {
	qualifiers := packageurl.Qualifiers{{Key: "arch", Value: d.architecture}, {Key: "distro", Value: suite}}
	return packageurl.NewPackageURL(packageurl.TypeDebian, "debian", d.name, d.version, qualifiers, "").ToString()
}

// fields are the lines of a file that is not empty, without comments.
func fields(path string) (lines [][]string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			lines = append(lines, words)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	return lines, nil
}

func readPins(manifest, packages string) (pins, error) {
	p := pins{architecture: "amd64", suites: map[string]string{}}
	lines, err := fields(manifest)
	if err != nil {
		return p, err
	}
	for _, words := range lines {
		if err := p.take(words); err != nil {
			return p, fmt.Errorf("%s: %q: %w", manifest, strings.Join(words, " "), err)
		}
	}
	if p.epoch.IsZero() || len(p.image) == 0 || len(p.tools) == 0 || len(p.programs) == 0 {
		return p, fmt.Errorf("%s: epoch, program, deb image and deb tools are needed", manifest)
	}
	if lines, err = fields(packages); err != nil {
		return p, err
	}
	for _, words := range lines {
		if words[0] == "suite" && len(words) == 3 {
			p.suites[map[string]string{"system": "image", "tools": "tools"}[words[1]]] = words[2]
		}
	}
	if p.suites["image"] == "" || p.suites["tools"] == "" {
		return p, fmt.Errorf("%s: the suites of system and tools are needed", packages)
	}
	return p, nil
}

// take takes one line of the manifest.
func (p *pins) take(words []string) error {
	switch {
	case words[0] == "architecture" && len(words) == 2:
		p.architecture = words[1]
	case words[0] == "epoch" && len(words) == 2:
		seconds, err := strconv.ParseInt(words[1], 10, 64)
		p.epoch = time.Unix(seconds, 0).UTC()
		return err
	case words[0] == "program" && len(words) == 5:
		p.programs = append(p.programs, pinnedModule{words[1], words[2], words[3], words[4]})
	case words[0] == "deb" && len(words) == 6 && words[1] == "image":
		p.image = append(p.image, deb{words[2], words[3], words[4], words[5]})
	case words[0] == "deb" && len(words) == 6 && words[1] == "tools":
		p.tools = append(p.tools, deb{words[2], words[3], words[4], words[5]})
	default:
		return fmt.Errorf("want architecture, epoch, program or deb image|tools, each with all of its words")
	}
	return nil
}

// addExtra reads what a site adds to the image.
func (p *pins) addExtra(s sources) error {
	if s.extra == "" {
		return nil
	}
	image, err := extra.OfImage(s.manifest)
	if err == nil {
		p.extra, err = extra.Read(s.extra, os.DirFS(s.extra), image)
	}
	return err
}

// foreignURL is the purl of a package that a site adds: it may be of another archive than Debian's.
func foreignURL(d extra.Package) string {
	qualifiers := packageurl.Qualifiers{{Key: "arch", Value: d.Architecture}}
	return packageurl.NewPackageURL(packageurl.TypeDebian, "", d.Name, d.Version, qualifiers, "").ToString()
}
