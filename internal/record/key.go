package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// kind is what an object is, by its key.
type kind int

const (
	unknown kind = iota // nothing of ours: View passes over it, Check names it
	inceptionObject
	claimObject
	outcomeObject
	closedObject
	stoppedObject
	incarnationObject
	startedObject
	markObject
	sealedObject
	orderObject
	doneObject
	acceptedObject
	verdictObject
	vmStopObject
	diskObject
	snapshotObject     // the compressed database
	snapshotInfoObject // what it is; a database without it does not count
	probeObject
	misplacedObject // an object where the layout has a folder: in a folder it would hide all that should be below it
)

// object is a parsed key. The fields that its kind has not are zero.
type object struct {
	kind   kind
	epoch  uint64
	place  replica.Place
	number uint64 // incarnation, order or bundle generation
	member MemberID
	name   string // a snapshot's: <epoch>/<revision>-<time>; a VM stop's: the instance id
}

// isSnapshot reports whether the object may be deleted by retention.
func (k object) isSnapshot() bool { return k.kind == snapshotObject || k.kind == snapshotInfoObject }

const (
	inceptionKey    = "inception.json"
	snapshotsFolder = "snapshots/"
)

func epochKey(epoch uint64, name string) string { return fmt.Sprintf("epochs/%d/%s", epoch, name) }
func claimKey(epoch uint64) string              { return epochKey(epoch, "claim.json") }
func outcomeKey(epoch uint64) string            { return epochKey(epoch, "outcome.json") }
func closedKey(epoch uint64) string             { return epochKey(epoch, "closed.json") }
func stoppedKey(epoch uint64, p replica.Place, k uint64) string {
	return epochKey(epoch, fmt.Sprintf("stopped/%s.%d.json", p, k))
}
func incarnationKey(p replica.Place, k uint64) string {
	return fmt.Sprintf("replicas/%s/%d.json", p, k)
}
func startedKey(p replica.Place, k uint64) string {
	return fmt.Sprintf("replicas/%s/%d.started.json", p, k)
}
func diskKey(p replica.Place, k uint64) string {
	return fmt.Sprintf("replicas/%s/%d.disk.json", p, k)
}
func markKey(id MemberID) string         { return fmt.Sprintf("marks/%s.json", id) }
func sealedKey(generation uint64) string { return fmt.Sprintf("bundle/%d.sealed", generation) }
func orderKey(n uint64) string           { return fmt.Sprintf("orders/%d.json", n) }
func doneKey(n uint64) string            { return fmt.Sprintf("orders/%d.done.json", n) }
func acceptedKey(n uint64) string        { return fmt.Sprintf("orders/%d.accepted.json", n) }
func verdictKey(n uint64) string         { return fmt.Sprintf("orders/%d.verdict.json", n) }
func vmStopKey(n uint64, instanceID string) string {
	return fmt.Sprintf("orders/%d.vm-stopped.%s.json", n, instanceID)
}
func snapshotKey(name string) string     { return snapshotsFolder + name + databaseSuffix }
func snapshotInfoKey(name string) string { return snapshotsFolder + name + ".json" }
func probeKey(nonce string) string       { return fmt.Sprintf("checks/%s.json", nonce) }

// parseKey is strict: only a key that the functions above spell is one of ours, so "epochs/01/claim.json" is not. Nor
// is one that ends with a slash, such as a console leaves where somebody makes a folder: it hides nothing.
func parseKey(key string) object {
	parts := strings.Split(key, "/")
	switch {
	case strings.HasSuffix(key, "/"):
		return object{}
	case key == inceptionKey:
		return object{kind: inceptionObject}
	case parts[0] == "epochs":
		return parseEpochKey(parts[1:])
	case parts[0] == "replicas":
		return parseReplicaKey(parts[1:])
	case len(parts) == 1 && slices.Contains([]string{"marks", "bundle", "orders", "snapshots", "checks"}, key):
		return object{kind: misplacedObject}
	case parts[0] == "snapshots" && len(parts) > 1:
		return parseSnapshotKey(parts[1:])
	case len(parts) == 2:
		return parseFlatKey(parts[0], parts[1])
	}
	return object{}
}

// parseFlatKey parses the keys of folders that hold objects and no folders.
func parseFlatKey(folder, name string) object {
	switch folder {
	case "marks":
		return parseMarkName(name)
	case "bundle":
		if n, ok := numbered(name, ".sealed"); ok {
			return object{kind: sealedObject, number: n}
		}
	case "orders":
		if n, ok := numbered(name, ".done.json"); ok {
			return object{kind: doneObject, number: n}
		}
		if n, ok := numbered(name, ".accepted.json"); ok {
			return object{kind: acceptedObject, number: n}
		}
		if n, ok := numbered(name, ".verdict.json"); ok {
			return object{kind: verdictObject, number: n}
		}
		if k := parseVMStopName(name); k.kind != unknown {
			return k
		}
		if n, ok := numbered(name, ".json"); ok {
			return object{kind: orderObject, number: n}
		}
	case "checks":
		return object{kind: probeObject}
	}
	return object{}
}

// parseVMStopName parses <n>.vm-stopped.<instance id>.json.
func parseVMStopName(name string) object {
	number, rest, _ := strings.Cut(name, ".vm-stopped.")
	id, ok := strings.CutSuffix(rest, ".json")
	n, isNumber := parseNumber(number)
	if _, isID := parseDecimal(id); !ok || !isNumber || !isID {
		return object{}
	}
	return object{kind: vmStopObject, number: n, name: id}
}

func parseEpochKey(parts []string) object {
	if len(parts) == 0 {
		return object{kind: misplacedObject}
	}
	epoch, ok := parseNumber(parts[0])
	if !ok {
		return object{}
	}
	switch rest := strings.Join(parts[1:], "/"); rest {
	case "", "stopped": // epochs/E and epochs/E/stopped
		return object{kind: misplacedObject}
	case "claim.json":
		return object{kind: claimObject, epoch: epoch}
	case "outcome.json":
		return object{kind: outcomeObject, epoch: epoch}
	case "closed.json":
		return object{kind: closedObject, epoch: epoch}
	default:
		name, ok := strings.CutPrefix(rest, "stopped/")
		dot := strings.LastIndexByte(strings.TrimSuffix(name, ".json"), '.')
		if !ok || dot < 0 {
			return object{}
		}
		place, ok := replica.ParsePlace(name[:dot])
		k, numberOK := numbered(name[dot+1:], ".json")
		if !ok || !numberOK {
			return object{}
		}
		return object{kind: stoppedObject, epoch: epoch, place: place, number: k}
	}
}

func parseReplicaKey(parts []string) object {
	if len(parts) == 0 {
		return object{kind: misplacedObject}
	}
	place, ok := replica.ParsePlace(parts[0])
	switch {
	case !ok:
		return object{}
	case len(parts) == 1:
		return object{kind: misplacedObject}
	case len(parts) == 2:
		if k, ok := numbered(parts[1], ".started.json"); ok {
			return object{kind: startedObject, place: place, number: k}
		}
		if k, ok := numbered(parts[1], ".disk.json"); ok {
			return object{kind: diskObject, place: place, number: k}
		}
		if k, ok := numbered(parts[1], ".json"); ok {
			return object{kind: incarnationObject, place: place, number: k}
		}
	}
	return object{}
}

func parseMarkName(name string) object {
	hex, ok := strings.CutSuffix(name, ".json")
	id, err := ParseMemberID(hex)
	if !ok || err != nil || id == 0 || id.String() != hex {
		return object{}
	}
	return object{kind: markObject, member: id}
}

// parseSnapshotKey parses <e>/<revision>-<time>.db.zst and .json; the time is the writer's affair.
func parseSnapshotKey(parts []string) object {
	epoch, ok := parseNumber(parts[0])
	if !ok {
		return object{}
	}
	if len(parts) == 1 {
		return object{kind: misplacedObject}
	}
	revision, taken, ok := strings.Cut(parts[1], "-")
	if _, number := parseNumber(revision); !ok || !number || len(parts) != 2 {
		return object{}
	}
	for suffix, kind := range map[string]kind{databaseSuffix: snapshotObject, ".json": snapshotInfoObject} {
		if t, ok := strings.CutSuffix(taken, suffix); ok && t != "" {
			return object{kind: kind, epoch: epoch, name: strings.TrimSuffix(strings.Join(parts, "/"), suffix)}
		}
	}
	return object{}
}

// numbered parses <number><suffix>.
func numbered(name, suffix string) (uint64, bool) {
	s, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return 0, false
	}
	return parseNumber(s)
}

// maxNumber is far above every number that is ever reached. One that is not ours must leave room for those that
// follow it.
const maxNumber = 1<<53 - 1

// parseNumber accepts what %d writes for numbers from 1 to maxNumber, and nothing else.
func parseNumber(s string) (uint64, bool) {
	n, ok := parseDecimal(s)
	return n, ok && n <= maxNumber
}

// parseDecimal accepts what %d writes for numbers from 1 on, also for an instance id.
func parseDecimal(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n > 0 && strconv.FormatUint(n, 10) == s
}
