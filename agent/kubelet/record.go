package kubelet

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// recordsKept is how many records the status shows: those of a bad night.
const recordsKept = 20

// Ended is what a record says of a process that ended without the watch.
const Ended = "ended"

// Record is one thing that happened to a unit, or that was done to it. It is plain data; its JSON keys are stable.
type Record struct {
	At   time.Time `json:"at"`
	Unit string    `json:"unit"`
	// What is ended, or the act: restart, start, park.
	What string `json:"what"`
	// Cause is the unit's state for which it was done, Reason what was found.
	Cause  kubeletwatch.State `json:"cause"`
	Reason string             `json:"reason"`
	// Stacks says where the process's stacks are, or why there are none; empty: none were asked for.
	Stacks string `json:"stacks,omitempty"`
	// Outcome is what came of it; empty: that is not known yet.
	Outcome string `json:"outcome,omitempty"`
}

// Text is the record in one sentence.
func (r Record) Text() string {
	text := fmt.Sprintf("%s of %s (%s): %s", r.What, r.Unit, r.Cause, r.Reason)
	if r.What == Ended {
		text = fmt.Sprintf("%s ended: %s", r.Unit, r.Reason)
	}
	if r.Stacks != "" {
		text += "; " + r.Stacks
	}
	if r.Outcome != "" {
		text += "; " + r.Outcome
	}
	return text
}

// Counts are how often something happened to a unit in this boot of the VM.
type Counts struct {
	Ended   int `json:"ended"`
	Restart int `json:"restart"`
	Start   int `json:"start"`
	Park    int `json:"park"`
}

func (c *Counts) count(what string) {
	switch what {
	case Ended:
		c.Ended++
	case string(kubeletwatch.Restart):
		c.Restart++
	case string(kubeletwatch.Start):
		c.Start++
	case string(kubeletwatch.Park):
		c.Park++
	}
}

// saved is what the next agent of this boot goes on from.
type saved struct {
	Runtime savedUnit `json:"runtime"`
	Kubelet savedUnit `json:"kubelet"`
	Records []Record  `json:"records"`
}

type savedUnit struct {
	Memory kubeletwatch.Memory `json:"memory"`
	Counts Counts              `json:"counts"`
}

// load reads what an earlier agent of this boot has left; nothing where there was none.
func load(path string) (s saved, err error) {
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return saved{}, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return saved{}, fmt.Errorf("read what the watch has done in this boot: %w", err)
	}
	for i := range s.Records {
		if s.Records[i].Outcome == "" {
			s.Records[i].Outcome = "the agent ended before it was known"
		}
	}
	return s, nil
}

func (s saved) write(path string) error {
	b, err := json.Marshal(s)
	if err == nil {
		err = durable.WriteFile(path, b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write down what the watch does: %w", err)
	}
	return nil
}
