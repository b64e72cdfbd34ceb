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

// Finding is one line of `quorate record check`.
type Finding struct {
	Level Level `json:"level"`
	// Subject is what was checked: reach, write-once, deletion, extra, content, or a key of the record.
	Subject string `json:"subject"`
	What    string `json:"what"`
}

// String is the line as people see it.
func (f Finding) String() string { return fmt.Sprintf("%-4s  %s: %s", f.Level, f.Subject, f.What) }
