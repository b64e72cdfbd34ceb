package record

import "fmt"

// Level is how bad a finding is.
type Level string

// The levels: Fail is a state in which a cluster must not be created or kept so, Warn one that a person should know.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is what a check found: one line of `quorate record check` and `quorate gce check`, with what to do about it.
type Finding struct {
	Level Level `json:"level"`
	// Subject is what was checked: reach, write-once, deletion, extra, content, or a key of the record.
	Subject string `json:"subject"`
	What    string `json:"what"`
	// Why says why it matters, Mend has the commands that mend it. Both may be empty.
	Why  string   `json:"why,omitempty"`
	Mend []string `json:"mend,omitempty"`
}

// String is the line as people see it.
func (f Finding) String() string { return fmt.Sprintf("%-4s  %s: %s", f.Level, f.Subject, f.What) }
