package replica

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/util/cert"
)

// What jwt and authorization have in common. Both become files that kube-apiserver reads when it starts. One that it
// refuses keeps it from starting on every replica, so the same is refused here. CEL expressions are the exception:
// only the apiserver compiles them.

const (
	httpsRule = "https://ADDRESS, without user, query and fragment"
	pemRule   = "certificates in PEM and no key"
)

// checkHTTPS refuses what is no address of an HTTPS server.
func checkHTTPS(f *Faults, field, value string) {
	if u := serverURL(value); u == nil || u.Scheme != "https" || strings.ContainsAny(value, "?#") {
		f.add(field, withoutUserinfo(value), httpsRule)
	}
}

// checkAuthorities never shows what it refuses: it may be a key that was mistaken for a certificate.
func checkAuthorities(f *Faults, field, pem string) {
	if pem == "" {
		return
	}
	_, err := cert.ParseCertsPEM([]byte(pem))
	switch {
	case strings.Contains(pem, "PRIVATE KEY"):
		*f = append(*f, Fault{Field: field, Found: "a private key", Allowed: pemRule})
	case err != nil:
		found := fmt.Sprintf("%d bytes that are not certificates (%v)", len(pem), err)
		*f = append(*f, Fault{Field: field, Found: found, Allowed: pemRule})
	}
}

// once notes what stands in a list for a second time.
type once struct{ seen []string }

func (o *once) check(f *Faults, field, value string) {
	if slices.Contains(o.seen, value) {
		f.add(field, withoutUserinfo(value), "something else in each: it stands in the list already")
	}
	o.seen = append(o.seen, value)
}

// expression refuses an expression that is none, or that its list has already.
func (o *once) expression(f *Faults, field, value string) {
	if checkExpression(f, field, value) {
		o.check(f, field, value)
	}
}

// checkExpression refuses an expression that is none, and reports whether it is one.
func checkExpression(f *Faults, field, value string) bool {
	if strings.TrimSpace(value) == "" {
		f.add(field, value, "a CEL expression")
		return false
	}
	return true
}
