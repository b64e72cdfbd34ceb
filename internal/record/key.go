package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// Kind is what an object is, by its key.
type Kind int

// The kinds of object.
const (
	UnknownObject Kind = iota // nothing of ours: View passes over it, Check names it
	InceptionObject
	ClaimObject
	OutcomeObject
	ClosedObject
	StoppedObject
	IncarnationObject
	StartedObject
	MarkObject
	SealedObject
	OrderObject
	DoneObject
	AcceptedObject
	VerdictObject
	VMStopObject
	DiskObject
	SnapshotObject     // the compressed database
	SnapshotInfoObject // what it is; a database without it does not count
	ProbeObject
	MisplacedObject // an object where the layout has a folder: in a folder it would hide all that should be below it
)

// Object is a parsed key. The fields that its kind has not are zero.
type Object struct {
	Kind   Kind
	Epoch  uint64
	Place  replica.Place
	Number uint64 // incarnation, order or bundle generation
	Member MemberID
	Name   string // a snapshot's: <epoch>/<revision>-<time>; a VM stop's: the instance id
}

// IsSnapshot reports whether the object may be deleted by retention.
func (k Object) IsSnapshot() bool { return k.Kind == SnapshotObject || k.Kind == SnapshotInfoObject }

const (
	// InceptionKey is the name of the object without which there is no cluster.
	InceptionKey = "inception.json"
	// SnapshotsFolder is the only folder from which anything is ever deleted.
	SnapshotsFolder = "snapshots/"
	// ProbesFolder is where checks write.
	ProbesFolder = "checks/"
	// DatabaseSuffix ends the name of the object that holds the compressed database.
	DatabaseSuffix = ".db.zst"
)

func epochKey(epoch uint64, name string) string { return fmt.Sprintf("epochs/%d/%s", epoch, name) }

// ClaimKey is epochs/<e>/claim.json.
func ClaimKey(epoch uint64) string { return epochKey(epoch, "claim.json") }

// OutcomeKey is epochs/<e>/outcome.json.
func OutcomeKey(epoch uint64) string { return epochKey(epoch, "outcome.json") }

// ClosedKey is epochs/<e>/closed.json.
func ClosedKey(epoch uint64) string { return epochKey(epoch, "closed.json") }

// StoppedKey is epochs/<e>/stopped/<place>.<k>.json.
func StoppedKey(epoch uint64, p replica.Place, k uint64) string {
	return epochKey(epoch, fmt.Sprintf("stopped/%s.%d.json", p, k))
}

// IncarnationKey is replicas/<place>/<k>.json.
func IncarnationKey(p replica.Place, k uint64) string {
	return fmt.Sprintf("replicas/%s/%d.json", p, k)
}

// StartedKey is replicas/<place>/<k>.started.json.
func StartedKey(p replica.Place, k uint64) string {
	return fmt.Sprintf("replicas/%s/%d.started.json", p, k)
}

// DiskKey is replicas/<place>/<k>.disk.json.
func DiskKey(p replica.Place, k uint64) string {
	return fmt.Sprintf("replicas/%s/%d.disk.json", p, k)
}

// MarkKey is marks/<member id>.json.
func MarkKey(id MemberID) string { return fmt.Sprintf("marks/%s.json", id) }

// SealedKey is bundle/<generation>.sealed.
func SealedKey(generation uint64) string { return fmt.Sprintf("bundle/%d.sealed", generation) }

// OrderKey is orders/<n>.json.
func OrderKey(n uint64) string { return fmt.Sprintf("orders/%d.json", n) }

// DoneKey is orders/<n>.done.json.
func DoneKey(n uint64) string { return fmt.Sprintf("orders/%d.done.json", n) }

// AcceptedKey is orders/<n>.accepted.json.
func AcceptedKey(n uint64) string { return fmt.Sprintf("orders/%d.accepted.json", n) }

// VerdictKey is orders/<n>.verdict.json.
func VerdictKey(n uint64) string { return fmt.Sprintf("orders/%d.verdict.json", n) }

// VMStopKey is orders/<n>.vm-stopped.<instance id>.json.
func VMStopKey(n uint64, instanceID string) string {
	return fmt.Sprintf("orders/%d.vm-stopped.%s.json", n, instanceID)
}

// SnapshotKey is snapshots/<e>/<revision>-<time>.db.zst, where name is without the folder and the ending.
func SnapshotKey(name string) string { return SnapshotsFolder + name + DatabaseSuffix }

// SnapshotInfoKey is snapshots/<e>/<revision>-<time>.json.
func SnapshotInfoKey(name string) string { return SnapshotsFolder + name + ".json" }

// ProbeKey is checks/<nonce>.json, the object by which a check tries the store.
func ProbeKey(nonce string) string { return ProbesFolder + nonce + ".json" }

// MarkProbeKey is the object by which a check tries whether a mark can be overwritten.
const MarkProbeKey = "marks/probe.json"

// ParseKey is strict: only a key that the functions above spell is one of ours, so "epochs/01/claim.json" is not. Nor
// is one that ends with a slash, such as a console leaves where somebody makes a folder: it hides nothing.
func ParseKey(key string) Object {
	parts := strings.Split(key, "/")
	switch {
	case strings.HasSuffix(key, "/"):
		return Object{}
	case key == InceptionKey:
		return Object{Kind: InceptionObject}
	case key == MarkProbeKey:
		return Object{Kind: ProbeObject}
	case parts[0] == "epochs":
		return parseEpochKey(parts[1:])
	case parts[0] == "replicas":
		return parseReplicaKey(parts[1:])
	case len(parts) == 1 && slices.Contains([]string{"marks", "bundle", "orders", "snapshots", "checks"}, key):
		return Object{Kind: MisplacedObject}
	case parts[0] == "snapshots" && len(parts) > 1:
		return parseSnapshotKey(parts[1:])
	case len(parts) == 2:
		return parseFlatKey(parts[0], parts[1])
	}
	return Object{}
}

// parseFlatKey parses the keys of folders that hold objects and no folders.
func parseFlatKey(folder, name string) Object {
	switch folder {
	case "marks":
		return parseMarkName(name)
	case "bundle":
		if n, ok := numbered(name, ".sealed"); ok {
			return Object{Kind: SealedObject, Number: n}
		}
	case "orders":
		if n, ok := numbered(name, ".done.json"); ok {
			return Object{Kind: DoneObject, Number: n}
		}
		if n, ok := numbered(name, ".accepted.json"); ok {
			return Object{Kind: AcceptedObject, Number: n}
		}
		if n, ok := numbered(name, ".verdict.json"); ok {
			return Object{Kind: VerdictObject, Number: n}
		}
		if k := parseVMStopName(name); k.Kind != UnknownObject {
			return k
		}
		if n, ok := numbered(name, ".json"); ok {
			return Object{Kind: OrderObject, Number: n}
		}
	case "checks":
		return Object{Kind: ProbeObject}
	}
	return Object{}
}

// parseVMStopName parses <n>.vm-stopped.<instance id>.json.
func parseVMStopName(name string) Object {
	number, rest, _ := strings.Cut(name, ".vm-stopped.")
	id, ok := strings.CutSuffix(rest, ".json")
	n, isNumber := ParseNumber(number)
	if _, isID := parseDecimal(id); !ok || !isNumber || !isID {
		return Object{}
	}
	return Object{Kind: VMStopObject, Number: n, Name: id}
}

func parseEpochKey(parts []string) Object {
	if len(parts) == 0 {
		return Object{Kind: MisplacedObject}
	}
	epoch, ok := ParseNumber(parts[0])
	if !ok {
		return Object{}
	}
	switch rest := strings.Join(parts[1:], "/"); rest {
	case "", "stopped": // epochs/E and epochs/E/stopped
		return Object{Kind: MisplacedObject}
	case "claim.json":
		return Object{Kind: ClaimObject, Epoch: epoch}
	case "outcome.json":
		return Object{Kind: OutcomeObject, Epoch: epoch}
	case "closed.json":
		return Object{Kind: ClosedObject, Epoch: epoch}
	default:
		name, ok := strings.CutPrefix(rest, "stopped/")
		dot := strings.LastIndexByte(strings.TrimSuffix(name, ".json"), '.')
		if !ok || dot < 0 {
			return Object{}
		}
		place, ok := replica.ParsePlace(name[:dot])
		k, numberOK := numbered(name[dot+1:], ".json")
		if !ok || !numberOK {
			return Object{}
		}
		return Object{Kind: StoppedObject, Epoch: epoch, Place: place, Number: k}
	}
}

func parseReplicaKey(parts []string) Object {
	if len(parts) == 0 {
		return Object{Kind: MisplacedObject}
	}
	place, ok := replica.ParsePlace(parts[0])
	switch {
	case !ok:
		return Object{}
	case len(parts) == 1:
		return Object{Kind: MisplacedObject}
	case len(parts) == 2:
		if k, ok := numbered(parts[1], ".started.json"); ok {
			return Object{Kind: StartedObject, Place: place, Number: k}
		}
		if k, ok := numbered(parts[1], ".disk.json"); ok {
			return Object{Kind: DiskObject, Place: place, Number: k}
		}
		if k, ok := numbered(parts[1], ".json"); ok {
			return Object{Kind: IncarnationObject, Place: place, Number: k}
		}
	}
	return Object{}
}

func parseMarkName(name string) Object {
	hex, ok := strings.CutSuffix(name, ".json")
	id, err := ParseMemberID(hex)
	if !ok || err != nil || id == 0 || id.String() != hex {
		return Object{}
	}
	return Object{Kind: MarkObject, Member: id}
}

// parseSnapshotKey parses <e>/<revision>-<time>.db.zst and .json; the time is by the writer's clock.
func parseSnapshotKey(parts []string) Object {
	epoch, ok := ParseNumber(parts[0])
	if !ok {
		return Object{}
	}
	if len(parts) == 1 {
		return Object{Kind: MisplacedObject}
	}
	revision, taken, ok := strings.Cut(parts[1], "-")
	if _, number := ParseNumber(revision); !ok || !number || len(parts) != 2 {
		return Object{}
	}
	for suffix, kind := range map[string]Kind{DatabaseSuffix: SnapshotObject, ".json": SnapshotInfoObject} {
		if t, ok := strings.CutSuffix(taken, suffix); ok && t != "" {
			return Object{Kind: kind, Epoch: epoch, Name: strings.TrimSuffix(strings.Join(parts, "/"), suffix)}
		}
	}
	return Object{}
}

// numbered parses <number><suffix>.
func numbered(name, suffix string) (uint64, bool) {
	s, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return 0, false
	}
	return ParseNumber(s)
}

// maxNumber is far above every number that is ever reached. One that is not ours must leave room for those that
// follow it.
const maxNumber = 1<<53 - 1

// ParseNumber accepts what %d writes for numbers from 1 to maxNumber, and nothing else.
func ParseNumber(s string) (uint64, bool) {
	n, ok := parseDecimal(s)
	return n, ok && n <= maxNumber
}

// parseDecimal accepts what %d writes for numbers from 1 on, also for an instance id.
func parseDecimal(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n > 0 && strconv.FormatUint(n, 10) == s
}
