package bucket

import "testing"

// BenchmarkViewUnchanged is what each view of a record that did not change costs: a boot that waits takes ten a second.
func BenchmarkViewUnchanged(b *testing.B) {
	s := openStore(b, newServed(b).url())
	write(b, s, fullView())
	if _, err := s.View(b.Context()); err != nil { // the first view reads every object
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.View(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
