package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The marks on objects. They are part of the interface: docs/addons.md lists them.
const (
	// ModeLabel is kube-addon-manager's own.
	ModeLabel = "addonmanager.kubernetes.io/mode"
	// OriginLabel is on each object that the manager keeps, and says how it came to that.
	OriginLabel = "addons.quorate.dev/origin"
	// OriginMade: the object was not there before. OriginTaken: it was, and its manifest has TakeOverAnnotation.
	OriginMade, OriginTaken = "made", "taken-over"
	// TakeOverAnnotation, "true" on a manifest, lets the manager take over an object that it has not made.
	TakeOverAnnotation = "addons.quorate.dev/take-over"
	// FieldOwner is the owner of every field that the manager applies, on each replica the same.
	FieldOwner = "quorate-addons"
)

// ID names one object.
type ID struct {
	APIVersion, Kind, Namespace, Name string
}

// Key is an ID without the version of its API: the same object is served in several.
type Key struct {
	Group, Kind, Namespace, Name string
}

// Group is the API's group; empty: core.
func (id ID) Group() string {
	if group, _, ok := strings.Cut(id.APIVersion, "/"); ok {
		return group
	}
	return ""
}

// Key is what tells this object from all others.
func (id ID) Key() Key { return Key{id.Group(), id.Kind, id.Namespace, id.Name} }

// String is for people.
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// Compare sorts objects by group, kind, namespace and name.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Group(), other.Group()), cmp.Compare(id.Kind, other.Kind),
		cmp.Compare(id.Namespace, other.Namespace), cmp.Compare(id.Name, other.Name),
		cmp.Compare(id.APIVersion, other.APIVersion))
}

// Mode says how an object is kept, by ModeLabel.
type Mode string

// The modes are kube-addon-manager's. Reconcile, also where the label is missing: the object is as its manifest says.
// EnsureExists: it is made where it is not there, and never changed or deleted.
const (
	Reconcile    Mode = "Reconcile"
	EnsureExists Mode = "EnsureExists"
)

// ParseMode reads the value of ModeLabel.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case "":
		return Reconcile, nil
	case Reconcile, EnsureExists:
		return m, nil
	}
	return "", fmt.Errorf("label %s: found %q; allowed: %s, %s", ModeLabel, text, Reconcile, EnsureExists)
}

// Object is one object of the set.
type Object struct {
	ID
	Mode     Mode
	TakeOver bool
	// Hash is of the manifest.
	Hash string
	// Source is the manifest's file, for people.
	Source string
	// Asks are the namespaces of the services that the apiserver asks because of the object: a webhook's, an extension
	// apiserver's. It is not made before the set's workloads there are ready.
	Asks []string
}

// Set is what the folder holds.
type Set struct {
	Version Version
	// Digest is of Account: the files, the objects and the faults.
	Digest  string
	Objects []Object
	// Faults are the files, or parts of files, that cannot be used: what they hold is not known.
	Faults []string
}

// Account is the text that the set's digest is made of: the digest of its files, and what this program has made of
// them. Of the same files another version of the program may make other objects, or find other faults: that is another
// set.
func (s Set) Account(files string) string {
	var lines []string
	for _, o := range s.Objects {
		lines = append(lines, fmt.Sprintf("%q %s", o.Key(), o.Hash))
	}
	for _, fault := range s.Faults {
		lines = append(lines, fmt.Sprintf("%q", fault))
	}
	slices.Sort(lines)
	return files + "\n" + strings.Join(lines, "\n")
}

// Complete says that it is known what the set holds.
func (s Set) Complete() bool { return len(s.Faults) == 0 && len(s.Objects) > 0 }

// stages order kinds: each stage is in place before the next begins. What no stage names belongs to stage 2.
var stages = map[string]int{
	"Namespace": 0, "CustomResourceDefinition": 0,
	"ServiceAccount": 1, "ClusterRole": 1, "ClusterRoleBinding": 1, "Role": 1, "RoleBinding": 1, "ConfigMap": 1,
	"Secret": 1, "PriorityClass": 1, "RuntimeClass": 1, "StorageClass": 1, "IngressClass": 1, "ResourceQuota": 1,
	"LimitRange": 1,
	// Whoever answers for these runs in a pod: before that pod they would only be in its way.
	"APIService": 3, "MutatingWebhookConfiguration": 3, "ValidatingWebhookConfiguration": 3,
	"ValidatingAdmissionPolicyBinding": 3,
}

// Stages is the number of stages.
const Stages = 4

// Definitions is the stage of what others need to exist at all: namespaces and definitions of kinds.
const Definitions = 0

// Stage is when an object's turn is, from 0.
func (id ID) Stage() int {
	if s, ok := stages[id.Kind]; ok {
		return s
	}
	return 2
}

// holdsOthers says that deleting the object would delete objects that somebody else has made.
func (id ID) holdsOthers() bool { return id.Stage() == Definitions }
