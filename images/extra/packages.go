package extra

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	version     = regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9.+~:-]*$`)
	sha         = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// repin is what a person does where packages and manifest do not fit.
func (r *reader) repin() string {
	arch := ""
	if _, other, ok := strings.Cut(r.image.Manifest, "."); ok {
		arch = "ARCH=" + other + " "
	}
	return "what " + arch + "images/master/pin.sh extra writes: run it again"
}

func (r *reader) packages(in input) {
	for _, l := range lines(in) {
		switch {
		case !packageName.MatchString(l.text):
			r.fault(in.path, l.number, fmt.Sprintf("%q", l.text),
				"the name of one Debian package a line, without a version")
		case slices.Contains(r.out.Packages, l.text):
			r.fault(in.path, l.number, l.text+" a second time", "each name once")
		default:
			r.out.Packages = append(r.out.Packages, l.text)
			r.named = append(r.named, l)
		}
	}
}

// manifest takes the lines "of HASH" and "deb image NAME VERSION ARCHITECTURE SHA256".
func (r *reader) manifest(in input) {
	for _, l := range lines(in) {
		w := strings.Fields(l.text)
		switch {
		case w[0] == "of" && len(w) == 2 && sha.MatchString(w[1]):
			r.of = w[1]
		case w[0] == "deb" && len(w) == 6 && w[1] == "image" && packageName.MatchString(w[2]) &&
			version.MatchString(w[3]) && sha.MatchString(w[5]):
			r.out.Pinned = append(r.out.Pinned, Package{w[2], w[3], w[4], w[5]})
			if r.inImage(w[2]) {
				r.fault(in.path, l.number, w[2]+", which the image has already", r.repin())
			}
		default:
			r.fault(in.path, l.number, fmt.Sprintf("%q", l.text),
				"of SHA256, deb image NAME VERSION ARCHITECTURE SHA256")
		}
	}
}

// inImage says whether the image has a package without the folder.
func (r *reader) inImage(name string) bool {
	return slices.ContainsFunc(r.image.Debs, func(l string) bool { return strings.HasPrefix(l, "deb image "+name+" ") })
}

// together compares packages and manifest: what is pinned must be what was asked for, above these pins of the image.
func (r *reader) together() {
	for _, l := range r.named {
		pinned := slices.ContainsFunc(r.out.Pinned, func(p Package) bool { return p.Name == l.text })
		if !pinned && !r.inImage(l.text) {
			r.fault("packages", l.number, l.text+", which "+r.image.Manifest+" does not pin", r.repin())
		}
	}
	if len(r.out.Pinned) > 0 && len(r.named) == 0 {
		r.fault(r.image.Manifest, 0, "pins without a name in packages", r.repin())
	}
	if want := PinsHash(r.image.Debs); len(r.out.Pinned) > 0 && r.of != want {
		r.fault(r.image.Manifest, 0, "pins that were resolved for another images/master/"+r.image.Manifest, r.repin())
	}
}

// PinsHash is what a manifest says after "of": the SHA-256 of the image's lines of packages.
func PinsHash(debs []string) string {
	sum := sha256.Sum256([]byte(strings.Join(debs, "\n") + "\n"))
	return hex.EncodeToString(sum[:])
}

// sources checks what apt is given: apt's own words for a mistake do not say what was meant.
func (r *reader) sources(in input) {
	all, found := lines(in), false
	deb822 := slices.ContainsFunc(all, func(l line) bool { return strings.HasPrefix(l.text, "Types:") })
	for _, l := range all {
		w := strings.Fields(l.text)
		if deb822 {
			found = found || w[0] == "Types:" && slices.Contains(w[1:], "deb")
			continue
		}
		found = true
		if w[0] != "deb" && w[0] != "deb-src" || len(w) < 4 || !strings.Contains(l.text, "://") {
			r.fault(in.path, l.number, fmt.Sprintf("%q", l.text),
				"deb URL SUITE COMPONENT..., or a file in apt's other format, with Types: deb")
		}
	}
	if !found {
		r.fault(in.path, 0, "no source of packages", "deb URL SUITE COMPONENT..., or Types: deb")
	}
}
