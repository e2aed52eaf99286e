package main

import (
	"math"
	"testing"
)

func TestFiguresKeepTheirDigits(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{rate(0.00904), "0.00904 req/s"}, {rate(0.0904), "0.0904 req/s"}, {rate(0.5), "0.500 req/s"}, {rate(6.0123), "6.012 req/s"},
		{rate(0), "0.000 req/s"}, {rate(1234567.8), "1,234,568 req/s"}, {rate(math.NaN()), "n/a"},
		{ms(1654105.9, 1), "1654.1 s"}, {ms(9999.94, 1), "9999.9 ms"}, {ms(523.42, 1), "523.4 ms"}, {ms(1.234, 1), "1.23 ms"},
		{ms(24.567, 2), "24.57 ms"}, {ms(math.NaN(), 1), "n/a"}, {ms(math.Inf(1), 1), "n/a"},
		{plural(1, "cell"), "1 cell"}, {plural(1234, "request"), "1,234 requests"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
