package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/quorate/quorate/internal/replica"
)

// Content is what an object can hold. fault reports, for an object at key k, what makes it unfit to decide anything.
// The same check guards the writing, because one unfit object makes every reader's View fail. Fields that a newer
// version added are passed over: the replicas of a cluster are upgraded one by one.
type Content interface {
	fault(k Object) error
}

func (i Inception) fault(Object) error {
	return named("uid", i.UID != "", "name", i.Name != "")
}

func (c Claim) fault(Object) error {
	err := errors.Join(placed("seeder", c.Seeder.Place),
		named("token", c.Token != "", "seeder.instanceID", c.Seeder.InstanceID != "", "maxLearners", c.MaxLearners > 0))
	switch c.Source.Kind {
	case SourceEmpty, SourceSnapshot, SourceDirectory, SourceRebuilt:
		return err
	}
	return errors.Join(err, fmt.Errorf("source.kind is %q: want empty, snapshot, directory or rebuilt", c.Source.Kind))
}

func (o Outcome) fault(Object) error {
	if (o.Formed == nil) == (o.Abandoned == nil) {
		return errors.New("want exactly one of formed and abandoned")
	}
	if o.Formed != nil {
		return named("formed.clusterID", o.Formed.ClusterID != 0, "formed.memberID", o.Formed.MemberID != 0)
	}
	return nil
}

func (c Closed) fault(Object) error { return nil }

func (s Stopped) fault(k Object) error {
	return at(s.Place == k.Place && s.Incarnation == k.Number, fmt.Sprintf("%s.%d", s.Place, s.Incarnation))
}

func (i Incarnation) fault(k Object) error {
	return errors.Join(at(i.Place == k.Place && i.Number == k.Number, fmt.Sprintf("%s/%d", i.Place, i.Number)),
		named("instanceID", i.InstanceID != "", "bootID", i.BootID != ""), addressed(i.Addresses))
}

func (s Started) fault(Object) error { return named("epoch", s.Epoch != 0) }

func (m Mark) fault(k Object) error { return at(m.MemberID == k.Member, m.MemberID.String()) }

func (o Order) fault(k Object) error {
	err := errors.Join(at(o.Number == k.Number, fmt.Sprint(o.Number)), named("kind", o.Kind != ""))
	if o.Place != nil {
		err = errors.Join(err, placed("place", *o.Place))
	}
	if o.Restore != nil {
		err = errors.Join(err, placed("restore.replica", o.Restore.Replica))
	}
	return err
}

func (s Snapshot) fault(k Object) error {
	return errors.Join(at(s.Name == k.Name && s.Epoch == k.Epoch, s.Name),
		named("revision", s.Revision > 0, "time", !s.Time.IsZero(), "sha256", len(s.SHA256) == 64, "size", s.Size > 0,
			"stored", s.Stored > 0))
}

func (d Done) fault(Object) error { return nil }

func (a Accepted) fault(Object) error { return nil }

func (v Verdict) fault(Object) error {
	if v.Closing == v.Withdrawn {
		return errors.New("want exactly one of closing and withdrawn")
	}
	return nil
}

func (v VMStop) fault(k Object) error { return at(v.InstanceID == k.Name, "instance "+v.InstanceID) }

func (d DataDisk) fault(Object) error { return named("diskID", d.DiskID != "") }

// named reports which of the named fields is missing: name, whether it is there, name, …
func named(pairs ...any) error {
	var errs []error
	for n := 0; n < len(pairs); n += 2 {
		if !pairs[n+1].(bool) {
			errs = append(errs, fmt.Errorf("%s is missing", pairs[n]))
		}
	}
	return errors.Join(errs...)
}

// placed reports a place that no VM can have. One that the key names as well is compared with the key's, which is
// valid.
func placed(field string, p replica.Place) error {
	if p.Valid() {
		return nil
	}
	return fmt.Errorf("%s is zone %q, name %q: want both as GCE has them, a-z, 0-9 and - with a letter first",
		field, p.Zone, p.Name)
}

// addressed reports an address that no interface of a VM has. A zone may be any text, which the hosts file would hold.
func addressed(list []netip.Addr) error {
	for _, a := range list {
		if !a.IsValid() || a.Zone() != "" {
			return fmt.Errorf("addresses has %q: want addresses without a zone", a)
		}
	}
	return nil
}

// at reports an object whose content belongs to another key.
func at(same bool, found string) error {
	if same {
		return nil
	}
	return fmt.Errorf("its content is of %q: it does not belong under this name", found)
}

// Encode refuses what a reader would refuse, and names that would be another object's or nobody's.
func Encode[T Content](key string, v T) ([]byte, error) {
	k := ParseKey(key)
	if k.Kind == UnknownObject {
		return nil, fmt.Errorf("no object has this name: numbers go from 1 to %d, a place is <zone>.<name>",
			uint64(maxNumber))
	}
	if err := v.fault(k); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

// Decode reads one object of type T strictly enough to decide on it.
func Decode[T Content](k Object, data []byte) (T, error) {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("not the JSON that belongs here: %w", err)
	}
	return v, v.fault(k)
}

// DecodeAny decodes the object by its kind.
func DecodeAny(k Object, data []byte) (Content, error) {
	switch k.Kind {
	case InceptionObject:
		return Decode[Inception](k, data)
	case ClaimObject:
		return Decode[Claim](k, data)
	case OutcomeObject:
		return Decode[Outcome](k, data)
	case ClosedObject:
		return Decode[Closed](k, data)
	case StoppedObject:
		return Decode[Stopped](k, data)
	case IncarnationObject:
		return Decode[Incarnation](k, data)
	case StartedObject:
		return Decode[Started](k, data)
	case MarkObject:
		return Decode[Mark](k, data)
	case OrderObject:
		return Decode[Order](k, data)
	case DoneObject:
		return Decode[Done](k, data)
	case AcceptedObject:
		return Decode[Accepted](k, data)
	case VerdictObject:
		return Decode[Verdict](k, data)
	case VMStopObject:
		return Decode[VMStop](k, data)
	case DiskObject:
		return Decode[DataDisk](k, data)
	case SnapshotInfoObject:
		return Decode[Snapshot](k, data)
	}
	return nil, fmt.Errorf("objects of kind %d hold no JSON", k.Kind)
}
