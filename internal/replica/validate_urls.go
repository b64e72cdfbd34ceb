package replica

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/pattern"
)

const (
	recordRule = "gs://BUCKET, without query but endpoint=http(s)://ADDRESS, a stand-in for Google's"
	sealRule   = "gcpkms://projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY, or " + base64Rule
	base64Rule = "base64key:// and 32 bytes in URL-safe base64 with padding, which are 44 characters"
	// localKeyRule says why the key must not stand in the document where the record is a bucket.
	localKeyRule = "gcpkms://projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY beside a gs:// record: " +
		"a base64key is in the metadata or in the image, beside the bucket whose bundle it should protect, " +
		"so whoever reads both has the CA keys"
)

// sealKeyBytes is how long a key in the document is: that of AES-256.
const sealKeyBytes = 32

var (
	bucketName = pattern.Of(`^[a-z0-9][-_.a-z0-9]{1,220}[a-z0-9]$`)
	kmsKey     = pattern.Of(`^projects/[^/?#\s]+/locations/[^/?#\s]+/keyRings/[^/?#\s]+/cryptoKeys/[^/?#\s]+$`)
)

// Validate checks the record alone, for whoever reaches it by another URL than the document's. The error is a Faults.
func (r Record) Validate() error {
	var f Faults
	r.validate(&f)
	return f.errOrNil()
}

func (r Record) validate(f *Faults) {
	if r.URL == "" {
		f.add("record.url", "", recordRule)
		return
	}
	bucket, isBucket := strings.CutPrefix(r.URL, gsScheme)
	bucket, query, hasQuery := strings.Cut(bucket, "?")
	if !isBucket || !bucketName().MatchString(bucket) || hasQuery && !standIn(query) {
		f.add("record.url", withoutUserinfo(r.URL), recordRule)
	}
}

// standIn reports whether a bucket's query names another server in Google's place, and nothing else.
func standIn(query string) bool {
	values, err := url.ParseQuery(query)
	if err != nil || len(values) != 1 || len(values["endpoint"]) != 1 {
		return false
	}
	return serverURL(values.Get("endpoint")) != nil
}

// inGoogle reports whether the record is a bucket of Google's, and not of a stand-in on this machine.
func (r Record) inGoogle() bool {
	bucket, isBucket := strings.CutPrefix(r.URL, gsScheme)
	return isBucket && bucketName().MatchString(bucket)
}

// validate never puts the value into a fault: it may be the key itself, also when it is misspelled.
func (s Seal) validate(record Record, f *Faults) {
	if s.Key == "" {
		f.add("seal.key", "", sealRule)
		return
	}
	if key, ok := strings.CutPrefix(s.Key, kmsScheme); ok && kmsKey().MatchString(key) {
		return
	}
	if key, ok := strings.CutPrefix(s.Key, base64Scheme); ok {
		if record.inGoogle() {
			*f = append(*f, Fault{Field: "seal.key", Found: "a base64key:// key that is not shown",
				Allowed: localKeyRule})
			return
		}
		found := base64KeyFault(key)
		if found == "" {
			return
		}
		*f = append(*f, Fault{Field: "seal.key", Found: found, Allowed: base64Rule})
		return
	}
	*f = append(*f, Fault{Field: "seal.key", Found: notShown, Allowed: sealRule})
}

// base64KeyFault says what is wrong with the key behind base64key://, without a letter of it; empty: nothing is.
func base64KeyFault(key string) string {
	raw, err := base64.URLEncoding.Strict().DecodeString(key)
	switch {
	case strings.ContainsAny(key, "\r\n"):
		return "a key that is not shown, with a line break in it"
	case err == nil && len(raw) == sealKeyBytes:
		return ""
	case err == nil:
		return fmt.Sprintf("a key of %d bytes that is not shown", len(raw))
	case strings.ContainsAny(key, "+/"):
		return "a key that is not shown, with + or /, which are - and _ in URL-safe base64"
	}
	return fmt.Sprintf("%d characters that are not shown, and not base64", len(key))
}

func (c Compute) validate(f *Faults) {
	if c.Endpoint == "" {
		return
	}
	u := serverURL(c.Endpoint)
	if u == nil || u.RawQuery != "" || u.Fragment != "" || !strings.HasSuffix(u.Path, "/compute/v1/") {
		f.add("compute.endpoint", withoutUserinfo(c.Endpoint), "http(s)://ADDRESS/compute/v1/")
	}
}

// validate: the address of a probe must be the replica's own, or one replica's health would decide over another's
// process.
func (p Probe) validate(field string, f *Faults) {
	if u := serverURL(p.URL); u == nil || !isLoopback(u.Hostname()) {
		f.add(field+".url", withoutUserinfo(p.URL),
			"http(s)://LOOPBACK ADDRESS:PORT/PATH, such as https://127.0.0.1:10258/healthz")
	}
}

// serverURL is the URL of an HTTP or HTTPS server, whatever stands behind its address; nil where a value is none, or
// has a user in it.
func serverURL(value string) *url.URL {
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || !validPort(u) ||
		u.User != nil {
		return nil
	}
	return u
}

// validPort reports whether a URL's port can be one; a URL without a port is fine too.
func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return true
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// withoutUserinfo keeps a password that somebody put into a URL out of logs.
func withoutUserinfo(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return s
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		return scheme + "://…" + rest[at:]
	}
	return s
}
