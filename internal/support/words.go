package support

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/pattern"
)

// leftOut stands where something was left out.
const leftOut = "…"

// Filter takes of texts what cannot be a secret. One goroutine at a time uses it.
type Filter struct {
	// names are taken as they are: those of the cluster, of its replicas, and ids that the record has.
	names map[string]bool
	// values are never taken, whatever they look like: what a person has configured.
	values []string
	// judged are chunks with what is kept of each: a log has the same ones again and again.
	judged map[string]string
}

// NewFilter knows names, and values that are never taken.
func NewFilter(names, values []string) *Filter {
	f := &Filter{names: map[string]bool{}, judged: map[string]string{}}
	for _, n := range names {
		f.names[n] = n != ""
	}
	for _, v := range values {
		if len(v) >= shortestValue && !plainValue().MatchString(v) {
			f.values = append(f.values, v)
		}
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(f.values, func(a, b string) int { return len(b) - len(a) })
	return f
}

// shortestValue: a configured value that is shorter is in half of all words.
const shortestValue = 4

var (
	// plainValue is a configured value that says nothing: a number, a duration, a boolean.
	plainValue = pattern.Of(`^(true|false|[0-9]{1,5}(\.[0-9]+)?[a-zA-Z]{0,2})$`)
	// block is a key or a certificate, also one whose end is missing.
	block = pattern.Of(`(?s)-----BEGIN [^-]*-----.*?(-----END [^-]*-----|$)`)
	// telling is a word after which a secret may stand. What follows it in the line is left out.
	telling = pattern.Of(`(?i)(pass(word|wd|phrase|code)|pwd|secret|token|credential|authorization|bearer|` +
		`cookie|private.?key|api.?key|access.?key|client.?key|(encryption|seal|signing).?key|x-goog)[a-z_-]*`)
	// harmlessly is what may follow a telling word in a sentence that goes on about something else.
	harmlessly = pattern.Of(`^s? (does|do|did|cannot|could|has|have|of|for|in|to|from|that|which|and|or|by|` +
		`at|on|not|expires|expired)\b`)
	// dumped is a line in which Kubernetes prints a flag of the command line.
	dumped = pattern.Of(`FLAG: `)
	chunk  = pattern.Of(`\S+|\s+`)
	piece  = pattern.Of("[=,;\"'`(){}\\[\\]\\\\]+|[^=,;\"'`(){}\\[\\]\\\\]+")

	lettersForm = pattern.Of(`^[A-Za-z]{1,24}$`)
	humps       = pattern.Of(`[A-Z]?[a-z]+|[A-Z]+`)
	numberForm  = pattern.Of(`^[+-]?[0-9]{1,20}(\.[0-9]{1,12})?(%|[kKMGT]i?B?|[mµn]?s|B)?$`)
	hexForm     = pattern.Of(`^\+?0x[0-9a-f]{1,16}$`)
	clockForm   = pattern.Of(`^[IWEF]?[0-9]{4}$|^[0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?$|` +
		`^[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}$`)
	regionForm = pattern.Of(`^(us|europe|asia|australia|northamerica|southamerica|africa|me)-[a-z]{2,16}` +
		`[0-9]{1,2}(-[a-z])?$`)
	versionForm  = pattern.Of(`^\*?v?[0-9]{1,4}(\.[0-9]{1,4}){1,3}$|^v[0-9]((alpha|beta)[0-9])?$`)
	exponentForm = pattern.Of(`^[0-9]\.[0-9]{1,9}e[+-][0-9]{2}$`)
	// stampForm is the time in the name of an archive or a file.
	stampForm = pattern.Of(`^[0-9]{8}T[0-9]{6}Z?$`)
	splitName = pattern.Of(`[-_./:*+%]+`)
)

// mixed are parts of names that have digits.
var mixed = []string{"k8s", "x509", "etcd3", "ipv4", "ipv6", "sha256", "http2", "h2", "utf8", "base64", "i18n", "p99",
	"grpc1", "tls12", "tls13", "oauth2", "le0", "s3", "ext4", "e2fsck", "nsswitch", "rfc3339"}

// Text is what of a text is taken, in one line or several.
func (f *Filter) Text(s string) string {
	s = block().ReplaceAllString(strings.ToValidUTF8(s, "?"), leftOut)
	for _, v := range f.values {
		s = strings.ReplaceAll(s, v, leftOut)
	}
	lines := strings.Split(s, "\n")
	for n, line := range lines {
		lines[n] = f.line(line)
	}
	return strings.Join(lines, "\n")
}

// line keeps of one line the chunks that are harmless, and nothing after a telling word.
func (f *Filter) line(s string) string {
	if flag := dumped().FindString(s); flag != "" {
		return flag + leftOut
	}
	rest := ""
	for _, at := range telling().FindAllStringIndex(s, -1) {
		if !harmlessly().MatchString(s[at[1]:]) {
			s, rest = s[:at[1]], " "+leftOut
			break
		}
	}
	var out strings.Builder
	for _, c := range chunk().FindAllString(s, -1) {
		kept, known := f.judged[c]
		if !known {
			kept = f.chunk(c)
			if len(f.judged) < mostJudged {
				f.judged[c] = kept
			}
		}
		out.WriteString(kept)
	}
	return out.String() + rest
}

// mostJudged bounds what is remembered of chunks.
const mostJudged = 50_000

// chunk keeps what stands in front of the first piece that may be a secret.
func (f *Filter) chunk(c string) string {
	if strings.TrimSpace(c) == "" || c == leftOut {
		return c
	}
	if flag := flagForm().FindString(c); flag != "" && len(flag) < len(c) {
		return flag + leftOut
	}
	var out strings.Builder
	for _, p := range piece().FindAllString(c, -1) {
		if !piecesApart(p) && !f.harmless(p) {
			return out.String() + leftOut
		}
		out.WriteString(p)
	}
	return out.String()
}

func piecesApart(p string) bool { return strings.ContainsAny(p[:1], "=,;\"'`(){}[]\\") }

// harmless reports whether a piece is a name that is known, a word, a number, a time or an address, or some of them
// joined as in a path or a name.
func (f *Filter) harmless(p string) bool {
	p = strings.TrimRight(strings.TrimLeft(p, "<>&~"), ".:!?<>&~")
	if p == "" || f.names[p] || strings.Trim(p, "-./:*+%|^…→–—·") == "" {
		return true
	}
	forms := []func() *regexp.Regexp{numberForm, hexForm, clockForm, regionForm, versionForm, exponentForm}
	for _, form := range forms {
		if form().MatchString(p) {
			return true
		}
	}
	if _, err := time.Parse(time.RFC3339Nano, p); err == nil {
		return true
	}
	if _, err := time.ParseDuration(p); err == nil || isAddress(p) {
		return true
	}
	return f.joined(p)
}

// longestPiece is more than any name has that is not a secret's.
const longestPiece = 120

// joined reports whether each part of a name is a word or a short number.
func (f *Filter) joined(p string) bool {
	if len(p) > longestPiece {
		return false
	}
	for _, part := range splitName().Split(p, -1) {
		switch {
		case part == "", f.names[part], slices.Contains(mixed, part), versionForm().MatchString(part),
			stampForm().MatchString(part):
		case len(part) <= 6 && strings.Trim(part, "0123456789") == "":
		case !isWord(part):
			return false
		}
	}
	return true
}

// isWord reports whether letters are a word, or words in camel case. Base64 changes its case far more often.
func isWord(p string) bool {
	return lettersForm().MatchString(p) && (len(p) < 4 || 3*len(humps().FindAllString(p, -1)) <= len(p)+1)
}
