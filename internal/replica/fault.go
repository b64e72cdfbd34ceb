package replica

import (
	"fmt"
	"strings"
)

// Fault is one thing wrong with a Cluster document.
type Fault struct {
	// Source and Line are where it stands, as far as that is known: Parse knows, Validate does not.
	Source string
	Line   int
	// Field is the path of the field: etcd.heartbeat, network.serviceCIDRs[1].
	Field string
	// Found is what stands there; empty: nothing. A secret never appears in it.
	Found string
	// Allowed says what may stand there, and why where that is not plain.
	Allowed string

	// whole replaces field, found and allowed where the document as a whole is at fault.
	whole error
}

// Error is one line: where, which field, what was found, what is allowed.
func (f Fault) Error() string {
	var b strings.Builder
	if f.Source != "" {
		b.WriteString(f.Source + ": ")
	}
	if f.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", f.Line)
	}
	if f.whole != nil {
		b.WriteString(f.whole.Error())
		return b.String()
	}
	if f.Field != "" {
		b.WriteString(f.Field + ": ")
	}
	found := f.Found
	if found == "" {
		found = "nothing"
	}
	fmt.Fprintf(&b, "found %s; allowed: %s", found, f.Allowed)
	return b.String()
}

// Faults is the error of Parse, Load and Validate: every fault that was found, one a line.
type Faults []Fault

// Error prints one fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// errOrNil keeps an empty list from becoming an error that is not nil.
func (f Faults) errOrNil() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// add records a fault of a decoded document. found is quoted here, so that a control character in it cannot break the
// line; an empty one reads "nothing".
func (f *Faults) add(field, found, allowed string) {
	if found != "" {
		found = quote(found)
	}
	*f = append(*f, Fault{Field: field, Found: found, Allowed: allowed})
}

// notShown stands where a secret may have been found.
const notShown = "a value that is not shown"

// maxQuoted keeps a line readable when somebody puts a file into a field.
const maxQuoted = 80

// quote shows a value of the document in one short line, unless it holds a key that strayed into another field.
func quote(s string) string {
	if strings.Contains(s, base64Scheme) {
		return notShown
	}
	if len(s) > maxQuoted {
		return fmt.Sprintf("%q… (%d bytes)", s[:maxQuoted], len(s))
	}
	return fmt.Sprintf("%q", s)
}
