package wire

import "testing"

func BenchmarkParse(b *testing.B) {
	a := newAnswers(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := a.q.Parse(a.msg); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAddress(b *testing.B) {
	a := newAnswers(b)
	b.ReportAllocs()
	for b.Loop() {
		a.address()
	}
}

func BenchmarkNXDomain(b *testing.B) {
	a := newAnswers(b)
	b.ReportAllocs()
	for b.Loop() {
		a.noName()
	}
}

func BenchmarkReferral(b *testing.B) {
	a := newAnswers(b)
	b.ReportAllocs()
	for b.Loop() {
		a.referral()
	}
}
