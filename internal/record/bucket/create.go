package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The Create and Confirm methods below share one contract. Each writes one object if it is absent, then reads it back:
//
//	got  what the record holds under that name now: the caller's or another's
//	won  got is the caller's, byte for byte, also where the answer to the write was lost or an earlier call wrote it
//	err  it is not known what the record holds, or will hold: a write may still take effect. Read again (View).
//
// Two writers of identical bytes both win. For a claim that cannot be, its token is random; an incarnation carries its
// VM's boot id; for the rest it is harmless, since the two say the same. A zero Time is set to now; a caller that may
// have to call again with the same object sets it itself, or the bytes differ.

// CreateInception writes inception.json.
func (s *Store) CreateInception(ctx context.Context, i record.Inception) (got record.Inception, won bool, err error) {
	if i.Name != s.cluster {
		return got, false, fmt.Errorf("create %s: it names cluster %q, the record is of %q",
			s.driver.where(record.InceptionKey), i.Name, s.cluster)
	}
	stamp(&i.Time)
	return create(ctx, s, record.InceptionKey, i)
}

// CreateClaim writes epochs/<e>/claim.json. The claim's token must be random.
func (s *Store) CreateClaim(ctx context.Context, epoch uint64, c record.Claim) (got record.Claim, won bool, err error) {
	stamp(&c.Time)
	return create(ctx, s, record.ClaimKey(epoch), c)
}

// CreateOutcome writes epochs/<e>/outcome.json.
func (s *Store) CreateOutcome(ctx context.Context, epoch uint64, o record.Outcome) (got record.Outcome, won bool,
	err error) {
	stamp(&o.Time)
	return create(ctx, s, record.OutcomeKey(epoch), o)
}

// CreateClosed writes epochs/<e>/closed.json.
func (s *Store) CreateClosed(ctx context.Context, epoch uint64, c record.Closed) (got record.Closed, won bool,
	err error) {
	stamp(&c.Time)
	return create(ctx, s, record.ClosedKey(epoch), c)
}

// CreateStopped writes epochs/<e>/stopped/<place>.<k>.json for the place and the incarnation that it names.
func (s *Store) CreateStopped(ctx context.Context, epoch uint64, st record.Stopped) (got record.Stopped, won bool,
	err error) {
	stamp(&st.Time)
	return create(ctx, s, record.StoppedKey(epoch, st.Place, st.Incarnation), st)
}

// CreateIncarnation writes replicas/<place>/<k>.json, pending, for the place and the number that it names.
func (s *Store) CreateIncarnation(ctx context.Context, i record.Incarnation) (got record.Incarnation, won bool,
	err error) {
	stamp(&i.Time)
	return create(ctx, s, record.IncarnationKey(i.Place, i.Number), i)
}

// ConfirmIncarnation writes replicas/<place>/<k>.started.json.
func (s *Store) ConfirmIncarnation(ctx context.Context, p replica.Place, k uint64,
	st record.Started) (got record.Started, won bool,
	err error) {
	stamp(&st.Time)
	return create(ctx, s, record.StartedKey(p, k), st)
}

// NoteDisk writes replicas/<place>/<k>.disk.json.
func (s *Store) NoteDisk(ctx context.Context, p replica.Place, k uint64, d record.DataDisk) (got record.DataDisk,
	won bool,
	err error) {
	stamp(&d.Time)
	return create(ctx, s, record.DiskKey(p, k), d)
}

// WriteMark overwrites marks/<member id>.json. Only that member's agent may call it.
func (s *Store) WriteMark(ctx context.Context, m record.Mark) error {
	stamp(&m.Time)
	key := record.MarkKey(m.MemberID)
	data, err := record.Encode(key, m)
	if err == nil {
		err = s.driver.overwrite(ctx, key, data)
	}
	if err != nil {
		return record.AtFault(fmt.Errorf("write %s: %w", s.driver.where(key), err))
	}
	return nil
}

// stamp sets a time that the caller left open.
func stamp(t *time.Time) {
	if t.IsZero() {
		*t = time.Now().UTC()
	}
}

// create encodes want, creates it and decodes what the record holds afterwards.
func create[T record.Content](ctx context.Context, s *Store, key string, want T) (got T, won bool, err error) {
	data, err := record.Encode(key, want)
	if err != nil {
		return got, false, fmt.Errorf("create %s: %w", s.driver.where(key), err)
	}
	stored, won, err := s.createBytes(ctx, key, data)
	if err != nil {
		return got, false, err
	}
	got, err = record.Decode[T](record.ParseKey(key), stored)
	if err != nil {
		return got, false, record.AtFault(fmt.Errorf("decode %s: %w", s.driver.where(key), err))
	}
	return got, won, nil
}

// createBytes is the write-once rule itself: create, then read back whatever the create answered. The read alone
// decides who won: a writer whose answer was lost may find its own bytes, and a writer that was told "exists" may have
// made them in an earlier try.
func (s *Store) createBytes(ctx context.Context, key string, data []byte) (stored []byte, won bool, err error) {
	if err := withinLimit(key, int64(len(data))); err != nil { // nobody could read it
		return nil, false, fmt.Errorf("create %s: %w", s.driver.where(key), err)
	}
	createErr := s.driver.create(ctx, key, data)
	stored, readErr := s.driver.read(ctx, key)
	switch {
	case readErr == nil:
		return stored, bytes.Equal(stored, data), nil
	case createErr == nil || errors.Is(createErr, errExists):
		return nil, false, record.AtFault(fmt.Errorf("read back %s: %w", s.driver.where(key), readErr))
	case errors.Is(readErr, errAbsent):
		return nil, false, record.AtFault(fmt.Errorf("create %s: %w", s.driver.where(key), createErr))
	}
	return nil, false, record.AtFault(fmt.Errorf("create %s: unknown whether it took effect: %w", s.driver.where(key),
		errors.Join(createErr, readErr)))
}
