package extra

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// proxyFile is what the agent and containerd get as their environment.
const proxyFile = "etc/quorate/proxy.env"

// direct are never asked through a proxy: this machine, and Google's metadata server, which no other machine has.
const direct = "localhost,127.0.0.0/8,::1,169.254.169.254,metadata.google.internal,metadata"

var hostName = regexp.MustCompile(`^(\*|\*?\.?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]+)?$`)

func (r *reader) proxy(in input) {
	const names = "HTTP_PROXY=URL, HTTPS_PROXY=URL and NO_PROXY=HOST,..., each once"
	got := map[string]string{}
	for _, l := range lines(in) {
		name, value, _ := strings.Cut(l.text, "=")
		_, double := got[name]
		switch {
		case !slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, name) || double:
			r.fault(in.path, l.number, fmt.Sprintf("%q", l.text), names)
		case name == "NO_PROXY":
			r.exceptions(in.path, l.number, value)
		case proxyURL(value) != nil:
			// The line is not shown: it may hold a password.
			r.fault(in.path, l.number, name+" with "+proxyURL(value).Error(), "http://HOST:PORT or https://HOST:PORT")
		}
		got[name] = value
	}
	if got["HTTP_PROXY"] == "" && got["HTTPS_PROXY"] == "" {
		r.fault(in.path, 0, "no proxy", names)
		return
	}
	var text strings.Builder
	text.WriteString("# The HTTP proxy of quorate.service and containerd.service.\n")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		if got[name] != "" {
			fmt.Fprintf(&text, "%s=%s\n", name, got[name])
		}
	}
	exceptions := direct
	if more := got["NO_PROXY"]; more != "" {
		exceptions += "," + more
	}
	fmt.Fprintf(&text, "NO_PROXY=%s\n", exceptions)
	r.add(in.path, proxyFile, 0o644, []byte(text.String()))
}

// proxyURL says what is wrong with one. A password in it would be in the image, for all who can read that.
func proxyURL(value string) error {
	u, err := url.Parse(value)
	switch {
	case err != nil:
		return fmt.Errorf("no URL")
	case u.User != nil:
		return fmt.Errorf("a user or password, which are no part of an image")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Path != "" && u.Path != "/", u.RawQuery != "",
		u.Fragment != "", strings.ContainsAny(value, " \t\"'\\$"):
		return fmt.Errorf("%q", value)
	}
	return nil
}

func (r *reader) exceptions(file string, number int, value string) {
	for part := range strings.SplitSeq(value, ",") {
		_, notAddress := netip.ParseAddr(part)
		_, notPrefix := netip.ParsePrefix(part)
		if notAddress != nil && notPrefix != nil && !hostName.MatchString(part) {
			r.fault(file, number, fmt.Sprintf("%q", part),
				"names, .DOMAIN, addresses and CIDRs, with commas between them and without spaces")
		}
	}
}
