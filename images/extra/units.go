package extra

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// unitFolder is where units of an administrator's stand: they come before a package's.
const unitFolder = "etc/systemd/system/"

var (
	unitName = regexp.MustCompile(
		`^[A-Za-z0-9:_.\\-]+@?[A-Za-z0-9:_.\\-]*\.(service|socket|timer|path|mount|automount|swap|target|slice)$`)
	dropIn   = regexp.MustCompile(`^([^/]+)\.d/([A-Za-z0-9:_.@-]+\.conf)$`)
	section  = regexp.MustCompile(`^\[[A-Za-z-]+\]$`)
	setting  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*\s*=`)
	crtName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*\.crt$`)
	ourUnits = regexp.MustCompile(`^(quorate.*|kubelet\.service|containerd\.service|chrony.*|var-lib-quorate\.mount)$`)
)

// imageDropIn is the name of the image's own drop-ins; one of that name would replace it.
const imageDropIn = "image.conf"

// unit takes one of units/.
func (r *reader) unit(in input, to string) {
	if parts := dropIn.FindStringSubmatch(to); parts != nil && unitName.MatchString(parts[1]) {
		if parts[2] == imageDropIn {
			r.fault(in.path, 0, "the name of the image's own drop-in", "another name: NAME.conf")
			return
		}
		r.unitText(in)
		r.add(in.path, unitFolder+to, 0o644, in.content)
		return
	}
	switch {
	case !unitName.MatchString(to):
		r.fault(in.path, 0, "no unit", "units/NAME.service, .socket, .timer, .path, .mount, .automount, .swap, "+
			".target, .slice, and units/NAME.service.d/NAME.conf")
	case ourUnits.MatchString(to):
		r.fault(in.path, 0, "a unit of the image's own", "a drop-in for it: units/"+to+".d/NAME.conf")
	default:
		r.unitText(in)
		r.add(in.path, unitFolder+to, 0o644, in.content)
		if slices.ContainsFunc(lines(in), func(l line) bool { return l.text == "[Install]" }) &&
			!strings.Contains(to, "@.") {
			r.out.Enabled = append(r.out.Enabled, to)
		}
	}
}

// unitText refuses what systemd would skip with a line in the journal.
func (r *reader) unitText(in input) {
	inSection, continued, number := false, false, 0
	for text := range strings.Lines(string(in.content)) {
		number++
		text = strings.TrimSpace(text)
		goesOn := strings.HasSuffix(text, `\`)
		switch {
		case text == "" || text[0] == '#' || text[0] == ';':
			continue
		case continued:
		case section.MatchString(text):
			inSection = true
		case !setting.MatchString(text):
			r.fault(in.path, number, fmt.Sprintf("%q", text), "[SECTION], NAME=VALUE and comments")
		case !inSection:
			r.fault(in.path, number, fmt.Sprintf("%q before any section", text), "[Unit], [Service] and the like first")
			inSection = true
		}
		continued = goesOn
	}
	if number == 0 {
		r.fault(in.path, 0, "an empty file", "a unit's text")
	}
}

// certificate takes one of certificates/: a CA in PEM. update-ca-certificates makes no link for a second one in a file.
func (r *reader) certificate(in input, to string) {
	const want = "one certificate of a CA in PEM, and nothing behind it"
	block, rest := pem.Decode(in.content)
	switch {
	case !crtName.MatchString(to):
		r.fault(in.path, 0, "a name that update-ca-certificates does not take", "certificates/NAME.crt")
	case block == nil:
		r.fault(in.path, 0, "no PEM", want)
	case block.Type != "CERTIFICATE":
		r.fault(in.path, 0, "a block of type "+block.Type, want)
	case strings.TrimSpace(string(rest)) != "":
		line := 1 + strings.Count(strings.TrimRight(string(in.content[:len(in.content)-len(rest)]), "\n"), "\n")
		r.fault(in.path, line+1, "something behind the certificate", want+"; each in a file of its own")
	default:
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			r.fault(in.path, 0, "a certificate that cannot be read ("+err.Error()+")", want)
		} else if !c.IsCA {
			r.fault(in.path, 0, "the certificate of "+c.Subject.String()+", which is no CA's", want)
		}
		r.add(in.path, "usr/local/share/ca-certificates/"+to, 0o644, in.content)
	}
}
