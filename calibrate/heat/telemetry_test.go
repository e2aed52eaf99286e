package heat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const header = "gpu,t_s,temp_c,sm_mhz,power_w,util_pct,share_power_cap,share_sw_thermal\n"

func TestReadNamesTheFault(t *testing.T) {
	good := "0,0,30,210,26,0,0,0\n0,10,50,1600,280,100,1,0\n0,20,60,1600,280,100,1,0\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":           {"", "x.csv: empty"},
		"no column":       {strings.ReplaceAll(header, "util_pct", "util") + good, "line 1: no column util_pct"},
		"not a number":    {header + "0,0,hot,210,26,0,0,0\n", `line 2: temp_c: got "hot", want degrees`},
		"NaN":             {header + good + "0,30,NaN,210,26,0,0,0\n", `line 5: temp_c: got "NaN"`},
		"infinite":        {header + "0,0,30,210,+Inf,0,0,0\n", `line 2: power_w: got "+Inf"`},
		"negative time":   {header + "0,-1,30,210,26,0,0,0\n", `line 2: t_s: got "-1", want seconds of at least 0`},
		"part of a card":  {header + "0.5,0,30,210,26,0,0,0\n", `line 2: gpu: got "0.5", want a whole number`},
		"over a share":    {header + "0,0,30,210,26,0,1.2,0\n", "line 2: share_power_cap"},
		"short row":       {header + good + "0,30\n", "line 5"},
		"twice":           {header + good + "0,10,50,1600,280,100,1,0\n", "line 5: gpu 0 at t_s 10: also on line 3"},
		"too few":         {header + "0,0,30,210,26,0,0,0\n", "got 1 bins"},
		"uneven":          {header + good + "0,35,50,1600,280,100,1,0\n", "bin at 20 is 15 s long, want 10 s"},
		"missing bin":     {header + good + "1,0,30,210,26,0,0,0\n", "gpu 1: no row at t_s 10"},
		"never at work":   {header + "0,0,30,210,26,0,0,0\n0,10,30,210,26,0,0,0\n0,20,30,210,26,0,0,0\n", "no card works"},
		"short bins":      {header + "0,0,30,210,26,0,0,0\n0,0.1,30,210,26,0,0,0\n0,0.2,30,210,26,0,0,0\n", "bins of 100ms"},
		"a quote astray":  {header + good + "0,\"30\n", "line 5"},
		"broken header":   {"gpu,\"t_s\n", "x.csv: "},
		"an enormous gpu": {header + "1e300,0,30,210,26,0,0,0\n", "line 2: gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.csv")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Read(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %q and the file", err, c.want)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.csv")); err == nil {
		t.Error("no file: got no error")
	}
}

// Columns may stand in any order with others between, rows and cards too.
func TestReadOrder(t *testing.T) {
	m, err := read("x.csv", strings.NewReader("host,util_pct,gpu,t_s,temp_c,power_w,sm_mhz,share_sw_thermal,share_power_cap\n"+
		"a,100,4,10,50,280,1600,0,1\na,0,4,0,30,26,210,0,0\na,100,4,20,60,270,1500,0.5,0.5\na,0,2,20,30,26,210,0,0\na,0,2,10,30,26,210,0,0\na,0,2,0,30,26,210,0,0\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Bin{TempC: 60, ClockMHz: 1500, PowerW: 270, Util: 1, PowerCap: 0.5, Thermal: 0.5, State: Loaded}
	if m.GPUs[0] != 2 || m.GPUs[1] != 4 || m.Bins[1][2] != want {
		t.Errorf("got gpus %v and last bin %+v, want 2, 4 and %+v", m.GPUs, m.Bins[1][2], want)
	}
	if len(m.Loads[0]) != 0 || len(m.Loads[1]) != 1 || m.Loads[1][0] != minutes(10, 30)[0] {
		t.Errorf("got loads %v, want none and 10 to 30 s", m.Loads)
	}
}

// Whatever the file holds, Read returns.
func FuzzRead(f *testing.F) {
	f.Add(header + "0,0,30,210,26,0,0,0\n0,10,50,1600,280,60,1,0\n0,20,60,1600,280,100,1,0\n")
	f.Add(header + "0,0,30,210,26,50,0,0\n0,10,50,0,0,60,1,0\n0,20,60,1600,0,100,1,0\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := read("x.csv", strings.NewReader(text))
		if err != nil {
			return
		}
		for i, loads := range m.Loads {
			for k, l := range loads {
				if l.From > l.To || k > 0 && l.From < loads[k-1].To {
					t.Errorf("card %d: got stretches %v, want them in order", i, loads)
				}
			}
		}
	})
}
