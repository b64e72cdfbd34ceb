package record

import (
	"context"
	"fmt"
	"slices"
)

// orderTries bounds how often CreateOrder takes the next number: people write orders, so more than a few at once is a
// fault.
const orderTries = 50

// ofOrders are the objects that carry an order's number. The number counts also where the order itself is lost: it must
// not come back.
var ofOrders = []kind{orderObject, doneObject, acceptedObject, verdictObject, vmStopObject}

// CreateOrder writes an order under the next free number and returns it with that number. o.Number is set here. If
// another writer takes the number, the next one is tried. After an error the order may have been written: look before
// giving it again.
func (s *Store) CreateOrder(ctx context.Context, o Order) (Order, error) {
	stamp(&o.Time)
	entries, err := s.list(ctx)
	if err != nil {
		return Order{}, fmt.Errorf("create order: %w", err)
	}
	o.Number = 0
	for _, e := range entries {
		if k := parseKey(e.key); slices.Contains(ofOrders, k.kind) {
			o.Number = max(o.Number, k.number)
		}
	}
	for range orderTries {
		o.Number++
		got, won, err := create(ctx, s, orderKey(o.Number), o)
		if err != nil {
			return Order{}, err
		}
		if won {
			return got, nil
		}
	}
	return Order{}, fmt.Errorf("create order: others took %d numbers in a row, up to %s", orderTries,
		s.driver.where(orderKey(o.Number)))
}

// AcceptOrder writes orders/<n>.accepted.json; its contract is that of the Create methods.
func (s *Store) AcceptOrder(ctx context.Context, n uint64, a Accepted) (got Accepted, won bool, err error) {
	stamp(&a.Time)
	return create(ctx, s, acceptedKey(n), a)
}

// SettleOrder writes orders/<n>.verdict.json; its contract is that of the Create methods. Who finds another's verdict
// follows that one.
func (s *Store) SettleOrder(ctx context.Context, n uint64, v Verdict) (got Verdict, won bool, err error) {
	stamp(&v.Time)
	return create(ctx, s, verdictKey(n), v)
}

// NoteVMStop writes orders/<n>.vm-stopped.<instance id>.json; its contract is that of the Create methods.
func (s *Store) NoteVMStop(ctx context.Context, n uint64, v VMStop) (got VMStop, won bool, err error) {
	stamp(&v.Time)
	return create(ctx, s, vmStopKey(n, v.InstanceID), v)
}

// CompleteOrder writes orders/<n>.done.json; its contract is that of the Create methods.
func (s *Store) CompleteOrder(ctx context.Context, n uint64, d Done) (got Done, won bool, err error) {
	stamp(&d.Time)
	return create(ctx, s, doneKey(n), d)
}
