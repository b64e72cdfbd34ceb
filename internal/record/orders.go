package record

import (
	"context"
	"fmt"
)

// orderTries bounds how often CreateOrder takes the next number: people write orders, so more than a few at once is a fault.
const orderTries = 50

// CreateOrder writes an order under the next free number and returns it with that number. o.Number is set here. If another
// writer takes the number, the next one is tried. After an error the order may have been written: look before giving it again.
func (s *Store) CreateOrder(ctx context.Context, o Order) (Order, error) {
	stamp(&o.Time)
	entries, err := s.list(ctx)
	if err != nil {
		return Order{}, fmt.Errorf("create order: %w", err)
	}
	o.Number = 0
	for _, e := range entries {
		// A done order counts too: should its order be lost, its number must not come back.
		if k := parseKey(e.key); k.kind == orderObject || k.kind == doneObject || k.kind == acceptedObject {
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
	return Order{}, fmt.Errorf("create order: others took %d numbers in a row, up to %s", orderTries, s.driver.where(orderKey(o.Number)))
}

// AcceptOrder writes orders/<n>.accepted.json; its contract is that of the Create methods.
func (s *Store) AcceptOrder(ctx context.Context, n uint64, a Accepted) (got Accepted, won bool, err error) {
	stamp(&a.Time)
	return create(ctx, s, acceptedKey(n), a)
}

// CompleteOrder writes orders/<n>.done.json; its contract is that of the Create methods.
func (s *Store) CompleteOrder(ctx context.Context, n uint64, d Done) (got Done, won bool, err error) {
	stamp(&d.Time)
	return create(ctx, s, doneKey(n), d)
}
