package support

import (
	"net/netip"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/pattern"
)

// shape is what a value may be.
type shape int

// The shapes. A number or a boolean is taken in each of them but part and named.
const (
	number  shape = iota + 1 // or a boolean
	moment                   // a time or a duration
	name                     // of a VM, a zone, a component, a lease, an object of Kubernetes
	id                       // decimal or hexadecimal
	address                  // of a network, with or without a port or a prefix
	place                    // of a bucket or a key: the scheme, and where it is not local what it names
	folder                   // a path
	digest                   // of a commit or a file
	text                     // passes Filter
	flags                    // a list of --flag=value: the flags alone
	part                     // an object, or a list of objects, that is listed itself
	named                    // an object whose keys are names, and each value a part
	names                    // an object of which only the keys are taken
)

var (
	nameForm   = pattern.Of(`^[A-Za-z][A-Za-z0-9]*([-._/:][A-Za-z0-9]+){0,12}$`)
	idForm     = pattern.Of(`^([0-9]{1,20}|[0-9a-f]{1,16}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)
	digestForm = pattern.Of(`^([0-9a-f]{40}(-dirty)?|[0-9a-f]{64}|unknown)$`)
	uidForm    = pattern.Of(`^[0-9a-f]{32}$`)
	flagForm   = pattern.Of(`^--?[a-z][a-z0-9-]*`)
	folderForm = pattern.Of(`^(/[A-Za-z0-9._-]{1,40}){1,12}/?$`)
	bucketForm = pattern.Of(`^(gs|gcpkms)://[A-Za-z0-9._/-]{1,250}`)

	// releaseForm is of a kernel, of etcd and the like: 6.1.0-38-cloud-amd64, v1.34.2.
	releaseForm = pattern.Of(`^v?[0-9]{1,4}(\.[0-9]{1,6}){1,3}([-+~._][A-Za-z0-9]{1,12}){0,8}\+?$`)
)

// longestName is the most that a name or a path has: what is longer is something else.
const longestName = 100

// fits reports whether a string looks as its shape says, and returns what of it is taken.
func (f *Filter) fits(s shape, v string) (string, bool) {
	switch s {
	case moment:
		_, timeErr := time.Parse(time.RFC3339Nano, v)
		_, durationErr := time.ParseDuration(v)
		return v, timeErr == nil || durationErr == nil
	case name:
		called := nameForm().MatchString(v) || releaseForm().MatchString(v)
		return v, v == "" || f.names[v] || len(v) <= longestName && called && !looksRandom(v)
	case id:
		return v, v == "" || idForm().MatchString(v) || uidForm().MatchString(v)
	case address:
		return v, isAddress(v)
	case place:
		return placeOf(v), true
	case digest:
		return v[:min(len(v), 12)], digestForm().MatchString(v) // enough to find it, and too short for a key
	case folder:
		return v, len(v) <= longestName && folderForm().MatchString(v)
	case text:
		return f.Text(v), true
	}
	return "", false
}

func isAddress(v string) bool {
	_, plain := netip.ParseAddr(v)
	_, withPort := netip.ParseAddrPort(v)
	_, prefix := netip.ParsePrefix(v)
	return plain == nil || withPort == nil || prefix == nil
}

// placeOf keeps of a URL what says where something is: of a key on one machine that is the key itself.
func placeOf(url string) string {
	if m := bucketForm().FindString(url); m != "" {
		return m
	}
	scheme, _, _ := strings.Cut(url, "://")
	if nameForm().MatchString(scheme) && len(scheme) < 12 {
		return scheme + "://" + leftOut
	}
	return leftOut
}

// looksRandom reports whether a part of a name is what nobody calls anything: letters of both cases and digits, or long
// with letters and digits. The parts of a UUID have 12 characters at most.
func looksRandom(v string) bool {
	for _, p := range strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune("-._/:", r) }) {
		hasUpper, hasLower := strings.ToLower(p) != p, strings.ToUpper(p) != p
		if strings.ContainsAny(p, "0123456789") && (hasUpper && hasLower && len(p) >= 6 ||
			(hasUpper || hasLower) && len(p) > 12) {
			return true
		}
	}
	return false
}
