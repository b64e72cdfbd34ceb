package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// Status is what a manager says of itself. It is plain data; its JSON keys are stable.
type Status struct {
	Folder string `json:"folder"`
	// Version and Digest are of the folder's set; Inventory is the version of the set that has written last.
	Version   Version `json:"version"`
	Digest    string  `json:"digest"`
	Inventory Version `json:"inventory"`
	// Standing is empty until the inventory has been read, and while the folder has no set.
	Standing Standing `json:"standing"`
	// Objects is how many the set has. InPlace are as their manifests say, or exist where that is all that is asked;
	// Ready of them do their work.
	Objects int `json:"objects"`
	InPlace int `json:"inPlace"`
	Ready   int `json:"ready"`
	// Writes counts what this process has changed in the cluster, its inventory included.
	Writes uint64 `json:"writes"`
	// Pass is when the folder was last compared with the cluster; zero: not yet.
	Pass time.Time `json:"pass,omitzero"`
	// Unreachable is why the last pass was broken off; empty: it was not.
	Unreachable string `json:"unreachable,omitempty"`
	// Faults are what of the folder cannot be used.
	Faults   []string       `json:"faults"`
	Failing  []ObjectStatus `json:"failing"`
	NotReady []ObjectStatus `json:"notReady"`
	// Contested are objects that somebody else changes back each time.
	Contested []ObjectStatus `json:"contested"`
	// Kept is why leftovers of former sets are not deleted; empty: there are none, or they are.
	Kept string `json:"kept,omitempty"`
	// Released are objects of former sets that were left in the cluster since the process began, with the reason.
	Released []ObjectStatus `json:"released"`
}

// ObjectStatus is one object and what is to be said of it.
type ObjectStatus struct {
	Object string    `json:"object"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// Source is the object's file, where it has one.
	Source string `json:"source,omitempty"`
}

// The names of the waits.
const (
	WaitOlder       = "addons-older"
	WaitDiffers     = "addons-differ"
	WaitFolder      = "addons-folder"
	WaitFailing     = "addons-failing"
	WaitNotReady    = "addons-not-ready"
	WaitContested   = "addons-contested"
	WaitUnreachable = "addons-unreachable"
)

// WaitNames are all names of the waits.
var WaitNames = []string{WaitOlder, WaitDiffers, WaitFolder, WaitFailing, WaitNotReady, WaitContested,
	WaitUnreachable}

const (
	// readyPatience is how long an object may take to do its work: an image is pulled, a pod is placed.
	readyPatience = 5 * time.Minute
	// failingPatience: what fails because another object is not there yet passes within some tries.
	failingPatience = 10 * time.Second
	// reachPatience outlasts a restart of the apiserver.
	reachPatience = 15 * time.Second
	// listed is how many objects a reason names.
	listed = 3
)

// Waits are what the status has to tell a person. None stops another add-on, or another replica.
func Waits(s Status, now time.Time) (out []replica.Wait) {
	wait := func(name, reason, next string) {
		out = append(out, replica.Wait{Name: name, Reason: reason, Next: next})
	}
	if len(s.Faults) > 0 {
		wait(WaitFolder, fmt.Sprintf("%s: %s", s.Folder, shortened(s.Faults)),
			"Put the folder right and raise its version. What can be used of it is applied; nothing is deleted.")
	}
	switch s.Standing {
	case Older:
		wait(WaitOlder, fmt.Sprintf("the set in %s is version %s, and version %s has been applied by another replica",
			s.Folder, s.Version, s.Inventory),
			"This replica writes no add-ons until its folder has that version. To go "+
				"back on purpose, raise the version of the older set.")
	case Differs:
		wait(WaitDiffers, fmt.Sprintf("the set in %s is version %s, and so is another one that was applied first",
			s.Folder, s.Version), "This replica writes no add-ons until the folders are the same, or its set has a "+
			"higher version.")
	}
	if late := older(s.Failing, now, failingPatience); len(late) > 0 {
		wait(WaitFailing, counted(late, "objects that are not in place"),
			"Each is tried again by itself, at most a minute later. The others are kept.")
	}
	if late := older(s.NotReady, now, readyPatience); len(late) > 0 {
		wait(WaitNotReady, counted(late, "objects that are not ready"),
			"They are in place; see their pods and their events.")
	}
	if len(s.Contested) > 0 {
		wait(WaitContested, counted(s.Contested, "objects that somebody else changes back"),
			"Each is written again after a pause of up to an hour. Take the field out of the manifest, or stop "+
				"the other.")
	}
	if s.Unreachable != "" && now.Sub(s.Pass) > reachPatience {
		wait(WaitUnreachable, s.Unreachable, "It is tried again by itself. What was applied stays as it is.")
	}
	return out
}

func older(list []ObjectStatus, now time.Time, than time.Duration) (out []ObjectStatus) {
	for _, o := range list {
		if now.Sub(o.Since) >= than {
			out = append(out, o)
		}
	}
	return out
}

func counted(list []ObjectStatus, what string) string {
	var texts []string
	for _, o := range list {
		text := o.Object
		if o.Source != "" {
			text += " (" + o.Source + ")"
		}
		texts = append(texts, text+": "+o.Reason)
	}
	return fmt.Sprintf("%s: %d: %s", what, len(list), shortened(texts))
}

func shortened(texts []string) string {
	if more := len(texts) - listed; more > 0 {
		return strings.Join(texts[:listed], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(texts, "; ")
}
