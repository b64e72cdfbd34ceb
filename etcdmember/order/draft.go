package order

import "github.com/quorate/quorate/internal/record"

// Draft is an order that has been checked and is about to be written.
type Draft struct {
	Order record.Order
	// Already says why nothing has to be written, as a sentence; empty: it must be.
	Already string
	// Means says what the agents do about it. Back is the command that takes it back, in which %d is the order's
	// number, and Then what follows; without Back nothing takes it back.
	Means, Back, Then string
	// Settles is the order to restore whose verdict is written first, as withdrawn; 0: there is none. Completes, as a
	// sentence, says that nothing but that verdict was missing.
	Settles   uint64
	Completes string
	// Confirm is asked after Means, unless it is empty.
	Confirm string
}

// withdrawIt is how most orders are taken back.
const withdrawIt = "quorate orders withdraw %d"
