package report

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestText is the most bytes that a text of a report or an event has.
const longestText = 600

// leftOut stands where a text had what could be a secret.
const leftOut = "(left out)"

var (
	// pem is a block of a key or a certificate, also one whose end is missing.
	pem = regexp.MustCompile(`(?s)-----BEGIN [^-]*-----.*?(-----END [^-]*-----|$)`)
	// localKey is a seal key that stands in its URL.
	localKey = regexp.MustCompile(`base64key://[^\s"',;]*`)
	// userInfo is a password in a URL.
	userInfo = regexp.MustCompile(`://[^/\s@]+@`)
	// word is what a token or a key in base64 looks like. Names, digests and paths are not that long in one piece, or
	// have no upper case.
	word = regexp.MustCompile(`[A-Za-z0-9+_=-]{32,}`)
	// padded is base64 that ends with its padding, also with slashes, as a path has.
	padded = regexp.MustCompile(`[A-Za-z0-9+/]{20,}={1,2}\B`)
)

// Clean is a text as a report may have it: in one line, shortened, and without what looks like a secret. What
// Kubernetes or etcd says in an error is not known here, so this is the second guard. The first is that no report is
// made from what holds a secret.
func Clean(text string) string {
	text = pem.ReplaceAllString(text, leftOut)
	text = localKey.ReplaceAllString(text, "base64key://"+leftOut)
	text = userInfo.ReplaceAllString(text, "://"+leftOut+"@")
	text = padded.ReplaceAllString(text, leftOut)
	text = word.ReplaceAllStringFunc(text, func(w string) string {
		if strings.ContainsFunc(w, unicode.IsUpper) && strings.ContainsFunc(w, unicode.IsLower) &&
			strings.ContainsFunc(w, unicode.IsDigit) {
			return leftOut
		}
		return w
	})
	return clip(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "))
}

// clip shortens a text at the end of a character.
func clip(text string) string {
	if len(text) <= longestText {
		return text
	}
	end := longestText - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
