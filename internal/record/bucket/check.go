package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/setup"
)

// Check examines the record as a whole: whether it can be reached, whether its place really keeps objects write-once,
// what guards it against deletion, and what is missing in it. It is meant for people and for the moment before a
// cluster is created. master is the masters' account where the client acts as that; empty: as somebody else, of whose
// rights nothing follows. It leaves a small object under marks/, and one under checks/ where it may not delete that.
func (s *Store) Check(ctx context.Context, master string) []record.Finding {
	entries, err := s.list(ctx)
	if err != nil {
		return []record.Finding{{Level: record.Fail, Subject: "reach", What: err.Error()}}
	}
	out := []record.Finding{{Level: record.OK, Subject: "reach",
		What: fmt.Sprintf("%s can be listed: %d objects", s, len(entries))}}
	var f setup.Facts
	s.driver.survey(ctx, &f)
	key := record.ProbeKey(rand.Text())
	once := s.checkWriteOnce(ctx, key)
	out = append(out, once)
	if once.Level == record.OK {
		out = append(out, s.checkDeletion(ctx, f.BucketName, key, master),
			s.checkOverwriting(ctx, f.BucketName, master))
	}
	out = append(out, checkBucket(f)...)
	out = append(out, extras(entries)...)
	out = append(out, s.checkSnapshots(ctx, entries)...)
	view, err := s.View(ctx)
	if err != nil {
		return append(out, record.Finding{Level: record.Fail, Subject: "content", What: err.Error()})
	}
	damage := slices.Concat(s.checkContent(view), checkNumbers(view, entries))
	if len(damage) == 0 {
		damage = []record.Finding{{Level: record.OK, Subject: "content",
			What: fmt.Sprintf("%d epochs, %d places, %d orders, bundle generation %d: "+
				"nothing missing",
				len(view.Epochs), len(view.Replicas), len(view.Orders), view.Bundle)}}
	}
	return append(out, damage...)
}

// checkContent finds what a whole record would not lack, by the judgement that the agents follow, and what is for
// people alone.
func (s *Store) checkContent(v record.View) (out []record.Finding) {
	if v.Inception != nil && v.Inception.Name != s.cluster {
		out = append(out, record.Finding{Level: record.Fail, Subject: record.InceptionKey,
			What: fmt.Sprintf("it names cluster %q, the record is of %q",
				v.Inception.Name, s.cluster)})
	}
	for _, d := range v.Damages() {
		out = append(out, d.Finding)
	}
	if e := v.Newest(); e != nil && e.Claim != nil && e.Outcome == nil && v.WasFormed(e) == "" {
		out = append(out, record.Finding{Level: record.Warn, Subject: record.EpochFolder(e.Number),
			What: fmt.Sprintf("claimed by %s at %s, no outcome yet",
				e.Claim.Seeder.Place, e.Claim.Time.Format("2006-01-02 15:04:05Z07:00"))})
	}
	return out
}

// probe is what Check writes.
type probe struct {
	Time  time.Time `json:"time"`
	Nonce string    `json:"nonce"`
}

// checkWriteOnce creates one object twice with different contents: the second must lose and the first must stay.
func (s *Store) checkWriteOnce(ctx context.Context, key string) record.Finding {
	const subject = "write-once"
	var contents [2][]byte
	for n := range contents {
		contents[n], _ = json.Marshal(probe{time.Now().UTC(), rand.Text()}) // strings and a time always encode
	}
	stored, won, err := s.createBytes(ctx, key, contents[0])
	if err == nil && !won {
		err = fmt.Errorf("read back other bytes than were written: %q", stored)
	}
	if err != nil {
		return record.Finding{Level: record.Fail, Subject: subject,
			What: fmt.Sprintf("cannot create an object: %v", err)}
	}
	if err := s.driver.create(ctx, key, contents[1]); !errors.Is(err, errExists) {
		return record.Finding{Level: record.Fail, Subject: subject,
			What: fmt.Sprintf("%s was created twice (second answer: %v): this place cannot hold "+
				"a record", s.driver.where(key), err)}
	}
	stored, err = s.driver.read(ctx, key)
	if err != nil || !bytes.Equal(stored, contents[0]) {
		return record.Finding{Level: record.Fail, Subject: subject,
			What: fmt.Sprintf("%s did not stay what it was (%v): this place cannot hold a record",
				s.driver.where(key), err)}
	}
	return record.Finding{Level: record.OK, Subject: subject, What: "an object that exists is not overwritten"}
}

// extras names the objects that are not the record's.
func extras(entries []entry) []record.Finding {
	var out []record.Finding
	for _, e := range entries {
		switch record.ParseKey(e.key).Kind {
		case record.UnknownObject:
			out = append(out, record.Finding{Level: record.Warn, Subject: "extra", What: e.key +
				" is not an object of the record: it is passed over"})
		case record.MisplacedObject:
			out = append(out, record.Finding{Level: record.Fail, Subject: "extra", What: e.key +
				" is an object where the record has a folder: remove it"})
		}
	}
	return out
}

// checkSnapshots names the snapshots that do not count though both of their objects are there.
func (s *Store) checkSnapshots(ctx context.Context, entries []entry) []record.Finding {
	var out []record.Finding
	for _, e := range counting(entries) {
		data, err := s.driver.read(ctx, e.key)
		if err == nil {
			_, err = record.Decode[record.Snapshot](record.ParseKey(e.key), data)
		}
		if err != nil && !errors.Is(err, errAbsent) {
			out = append(out, record.Finding{Level: record.Warn, Subject: e.key,
				What: fmt.Sprintf("this snapshot does not count: %v", err)})
		}
	}
	return out
}
