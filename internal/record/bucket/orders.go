package bucket

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/record"
)

// orderTries bounds how often CreateOrder takes the next number: people write orders, so more than a few at once is a
// fault.
const orderTries = 50

// ofOrders are the objects that carry an order's number. The number counts also where the order itself is lost: it must
// not come back.
var ofOrders = []record.Kind{record.OrderObject, record.DoneObject, record.AcceptedObject, record.VerdictObject,
	record.VMStopObject}

// CreateOrder writes an order under the next free number and returns it with that number. o.Number is set here. If
// another writer takes the number, the next one is tried. After an error the order may have been written: read the
// orders before giving it again.
func (s *Store) CreateOrder(ctx context.Context, o record.Order) (record.Order, error) {
	stamp(&o.Time)
	entries, err := s.list(ctx)
	if err != nil {
		return record.Order{}, fmt.Errorf("create order: %w", err)
	}
	o.Number = 0
	for _, e := range entries {
		if k := record.ParseKey(e.key); slices.Contains(ofOrders, k.Kind) {
			o.Number = max(o.Number, k.Number)
		}
	}
	for range orderTries {
		o.Number++
		got, won, err := create(ctx, s, record.OrderKey(o.Number), o)
		if err != nil {
			return record.Order{}, err
		}
		if won {
			return got, nil
		}
	}
	return record.Order{}, fmt.Errorf("create order: others took %d numbers in a row, up to %s", orderTries,
		s.driver.where(record.OrderKey(o.Number)))
}

// AcceptOrder writes orders/<n>.accepted.json; its contract is that of the Create methods.
func (s *Store) AcceptOrder(ctx context.Context, n uint64, a record.Accepted) (got record.Accepted, won bool,
	err error) {
	stamp(&a.Time)
	return create(ctx, s, record.AcceptedKey(n), a)
}

// SettleOrder writes orders/<n>.verdict.json; its contract is that of the Create methods. Who finds another's verdict
// follows that one.
func (s *Store) SettleOrder(ctx context.Context, n uint64, v record.Verdict) (got record.Verdict, won bool, err error) {
	stamp(&v.Time)
	return create(ctx, s, record.VerdictKey(n), v)
}

// NoteVMStop writes orders/<n>.vm-stopped.<instance id>.json; its contract is that of the Create methods.
func (s *Store) NoteVMStop(ctx context.Context, n uint64, v record.VMStop) (got record.VMStop, won bool, err error) {
	stamp(&v.Time)
	return create(ctx, s, record.VMStopKey(n, v.InstanceID), v)
}

// CompleteOrder writes orders/<n>.done.json; its contract is that of the Create methods.
func (s *Store) CompleteOrder(ctx context.Context, n uint64, d record.Done) (got record.Done, won bool, err error) {
	stamp(&d.Time)
	return create(ctx, s, record.DoneKey(n), d)
}
