package workload

import (
	"math"
	"slices"
	"testing"
	"time"
)

// chiSquare pools neighbouring cells until each expects at least 10.
func chiSquare(got, want []float64) (chi float64, df int) {
	var g, w float64
	for i := range got {
		g += got[i]
		w += want[i]
		if w >= 10 {
			chi += (g - w) * (g - w) / w
			df++
			g, w = 0, 0
		}
	}
	return chi, df - 1
}

// chiBound is some five deviations above what chance gives.
func chiBound(df int) float64 { return float64(df) + 5*math.Sqrt(2*float64(df)) }

func TestSessionsFollowZipf(t *testing.T) {
	const users, visits = 400, 250
	for _, skew := range []float64{0, 1, 1.4} {
		m, err := Published(1, skew, 629_760, 3).Resolve()
		if err != nil {
			t.Fatal(err)
		}
		draws := m.Draws()
		got, want := make([]float64, m.Sessions), make([]float64, m.Sessions)
		total := 0.0
		for i := range want {
			want[i] = math.Pow(float64(i+1), -skew)
			total += want[i]
		}
		for i := range want {
			want[i] *= users * visits / total
		}
		for user := range users {
			for visit := range visits {
				got[draws.Session(user, visit)]++
			}
		}
		if chi, df := chiSquare(got, want); chi > chiBound(df) {
			t.Errorf("skew %v: got a chi-square of %.1f, want about %d", skew, chi, df)
		}
		// The other exponents are told apart.
		for i := range want {
			want[i] = math.Pow(float64(i+1), -skew-0.05)
		}
		total = 0
		for _, w := range want {
			total += w
		}
		for i := range want {
			want[i] *= users * visits / total
		}
		if chi, df := chiSquare(got, want); chi < chiBound(df) {
			t.Errorf("skew %v: it fits %v too", skew, skew+0.05)
		}
	}
}

func TestExtremeSkews(t *testing.T) {
	for _, c := range []struct {
		sessions int
		skew     float64
	}{{1, 0}, {1, 3}, {1000, 50}, {1000, 1e300}, {3, math.SmallestNonzeroFloat64}} {
		m, err := MultiTurn{Sessions: c.sessions, Skew: c.skew}.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		draws := m.Draws()
		for v := range 2000 {
			s := draws.Session(0, v)
			if s < 0 || s >= c.sessions || c.skew >= 50 && s != 0 {
				t.Fatalf("%d sessions, skew %v: got session %d", c.sessions, c.skew, s)
			}
		}
	}
}

// The draws of one user say nothing about another's, or about its own next.
func TestDrawsAreIndependent(t *testing.T) {
	m, err := MultiTurn{Sessions: 10}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	draws := m.Draws()
	for name, next := range map[string]func(i int) (a, b int){
		"visits": func(i int) (int, int) { return draws.Session(i/100, i%100), draws.Session(i/100, i%100+1) },
		"users":  func(i int) (int, int) { return draws.Session(i/100, i%100), draws.Session(i/100+1, i%100) },
	} {
		got, want := make([]float64, 100), make([]float64, 100)
		for i := range 20_000 {
			a, b := next(i)
			got[10*a+b]++
		}
		for i := range want {
			want[i] = 200
		}
		if chi, df := chiSquare(got, want); chi > chiBound(df) {
			t.Errorf("%s: got a chi-square of %.1f over pairs, want about %d", name, chi, df)
		}
	}
}

func TestEpochDoesNotChangeTheDraws(t *testing.T) {
	m := published(t)
	a, b := m.Draws().Dealer(1, 7), m.Draws().Dealer(2, 7)
	order := false
	for range 20 {
		var first, second []Conversation
		for range 7 {
			first, second = append(first, a.Next()), append(second, b.Next())
		}
		order = order || !slices.Equal(first, second)
		byUser := func(x, y Conversation) int { return x.User - y.User }
		slices.SortFunc(first, byUser)
		slices.SortFunc(second, byUser)
		if !slices.Equal(first, second) {
			t.Fatalf("got rounds %v and %v, want the same in another order", first, second)
		}
	}
	if !order {
		t.Error("got the same order in both epochs, want different ones")
	}
}

func TestDealerDealsRounds(t *testing.T) {
	m := published(t)
	draws := m.Draws()
	for _, slots := range []int{1, 2, 30} {
		dealer := draws.Dealer(1, slots)
		now := make([]Conversation, slots)
		for i := range now {
			now[i] = Conversation{User: i, Session: draws.Session(i, 0)}
		}
		orders := map[string]int{}
		for round := range 100 {
			var order []byte
			dealt := make([]bool, slots)
			for range slots {
				c := dealer.Next()
				if dealt[c.User] {
					t.Fatalf("%d slots, round %d: slot %d is dealt twice", slots, round, c.User)
				}
				dealt[c.User] = true
				if want := (Conversation{c.User, round / 4, draws.Session(c.User, round/4), round % 4}); c != want {
					t.Fatalf("%d slots, round %d: got %+v, want %+v", slots, round, c, want)
				}
				order = append(order, byte(c.User))
			}
			orders[string(order)]++
		}
		if slots == 30 && len(orders) != 100 {
			t.Errorf("got %d orders in 100 rounds of 30, want as many", len(orders))
		}
	}
}

// Every slot is as often at every place of a round.
func TestDealerShufflesEvenly(t *testing.T) {
	const slots, rounds = 6, 6000
	m := published(t)
	dealer := m.Draws().Dealer(4, slots)
	got, want := make([]float64, slots*slots), make([]float64, slots*slots)
	for range rounds {
		for place := range slots {
			got[slots*place+dealer.Next().User]++
		}
	}
	for i := range want {
		want[i] = rounds / slots
	}
	if chi, df := chiSquare(got, want); chi > chiBound(df) {
		t.Errorf("got a chi-square of %.1f over places and slots, want about %d", chi, df)
	}
}

func TestSlots(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		think time.Duration
		want  int
	}{{6, 5 * time.Second, 30}, {0.01, time.Second, 1}, {10.0 / 3, 3 * time.Second, 10}, {7, 500 * time.Millisecond, 4}} {
		if got := Slots(c.rate, c.think); got != c.want {
			t.Errorf("%v requests per second, %v: got %d slots, want %d", c.rate, c.think, got, c.want)
		}
	}
}

func TestDrawsAllocateNothing(t *testing.T) {
	m := published(t)
	draws := m.Draws()
	dealer := draws.Dealer(1, 30)
	if got := testing.AllocsPerRun(100, func() { draws.Session(3, 4) }); got != 0 {
		t.Errorf("Session allocates %v times, want 0", got)
	}
	if got := testing.AllocsPerRun(100, func() { dealer.Next() }); got > 0.2 {
		t.Errorf("Next allocates %v times, want hardly ever", got)
	}
}

func BenchmarkSession(b *testing.B) {
	m := published(b)
	draws := m.Draws()
	for i := range b.N {
		draws.Session(i&31, i)
	}
}

func BenchmarkDealer(b *testing.B) {
	m := published(b)
	dealer := m.Draws().Dealer(1, 30)
	for range b.N {
		dealer.Next()
	}
}
