package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"weft/pjrt"
)

// LogicalHosts are several hosts in one process: each has a Runtime with a part of the devices of one client, as the
// processes of a slice have, so that what runs on several hosts can be run, and tested, where there is one.
//
// A program runs when every host has called it: the calls are merged into one execution on all devices. A host that never
// calls leaves the others waiting, as on a slice, until Lose ends their wait. Hosts that call different programs get an
// error that names them, where a slice would hang.
type LogicalHosts struct {
	client   *pjrt.Client
	runtimes []*Runtime

	mu       sync.Mutex
	programs map[string]*sharedProgram
	calls    map[int]*sharedCall // by number
	called   []int               // by host: its calls so far
	lost     error
	gone     chan struct{} // closed when lost is set
}

// OpenLogicalHosts opens a client as Open does and deals the devices of its mesh, in order, to so many hosts.
func OpenLogicalHosts(o Options, hosts int) (*LogicalHosts, error) {
	all, err := Open(o)
	if err != nil {
		return nil, err
	}
	n := len(all.devices)
	if len(all.local) != n || hosts < 1 || n%hosts != 0 {
		return nil, errors.Join(fmt.Errorf("%d devices, %d of this process, cannot be dealt to %d logical hosts: take a multiple of that", n, len(all.local), hosts), all.Close())
	}
	h := &LogicalHosts{client: all.client, programs: map[string]*sharedProgram{}, calls: map[int]*sharedCall{}, called: make([]int, hosts), gone: make(chan struct{})}
	each := n / hosts
	for i := range hosts {
		rt := *all
		rt.hosts, rt.process, rt.processes = h, i, hosts
		rt.owners = make([]int, n)
		for p := range n {
			rt.owners[p] = p / each
		}
		rt.local = all.local[i*each : (i+1)*each]
		h.runtimes = append(h.runtimes, &rt)
	}
	return h, nil
}

// Runtime is that of one host, the same each time.
func (h *LogicalHosts) Runtime(host int) *Runtime { return h.runtimes[host] }

// Lose ends every wait for another host, now and from now on, with an error that wraps why. The first reason counts.
func (h *LogicalHosts) Lose(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil {
		h.lost = fmt.Errorf("the other hosts cannot be reached: %w", why)
		close(h.gone)
	}
}

// Close releases the client. What the hosts made must have been destroyed.
func (h *LogicalHosts) Close() error { return h.client.Close() }

// sharedProgram is a program of all hosts, compiled by the first that asks for it.
type sharedProgram struct {
	name     string
	once     sync.Once
	exe      *pjrt.LoadedExecutable
	err      error
	fromFile bool
	order    []int // for each device of the executable, its position in the mesh
	users    int
}

// compile gives a host its part of a program.
func (h *LogicalHosts) compile(rt *Runtime, low *Lowered) (executable, bool, error) {
	key := low.Name + "\x00" + string(low.Text)
	h.mu.Lock()
	s := h.programs[key]
	if s == nil {
		s = &sharedProgram{name: low.Name}
		h.programs[key] = s
	}
	s.users++
	h.mu.Unlock()
	s.once.Do(func() {
		if s.exe, s.fromFile, s.err = rt.compileHere(low); s.err != nil {
			return
		}
		for _, d := range s.exe.AddressableDevices() {
			s.order = append(s.order, slices.IndexFunc(rt.devices, func(o *pjrt.Device) bool { return o.ID() == d.ID() }))
		}
	})
	p := &hostProgram{hosts: h, host: rt.process, key: key, shared: s}
	if s.err != nil {
		return nil, false, errors.Join(s.err, p.Destroy())
	}
	for i, position := range s.order {
		if slices.Contains(rt.local, position) {
			p.mine = append(p.mine, i)
		}
	}
	return p, s.fromFile, nil
}

// hostProgram is a program as one host has it.
type hostProgram struct {
	hosts  *LogicalHosts
	host   int
	key    string
	shared *sharedProgram
	mine   []int // this host's devices, as indices of the executable's
	freed  bool
}

// AddressableDevices implements executable.
func (p *hostProgram) AddressableDevices() []*pjrt.Device {
	var out []*pjrt.Device
	for _, i := range p.mine {
		out = append(out, p.shared.exe.AddressableDevices()[i])
	}
	return out
}

// Executable implements executable.
func (p *hostProgram) Executable() (*pjrt.Executable, error) { return p.shared.exe.Executable() }

// Destroy implements executable: the last host that has the program releases it.
func (p *hostProgram) Destroy() error {
	p.hosts.mu.Lock()
	defer p.hosts.mu.Unlock()
	if p.freed {
		return nil
	}
	p.freed = true
	if p.shared.users--; p.shared.users > 0 || p.hosts.programs[p.key] != p.shared {
		return nil
	}
	delete(p.hosts.programs, p.key)
	if p.shared.exe == nil {
		return nil
	}
	return p.shared.exe.Destroy()
}

// sharedCall is one execution on all hosts, which begins when the last of them has come.
type sharedCall struct {
	programs []*sharedProgram // by host, nil for those that have not come
	came     int
	args     [][]*pjrt.Buffer // by device of the executable
	outs     [][]*pjrt.Buffer
	done     []*pjrt.Event
	err      error
	ended    chan struct{}
}

// Execute implements executable: it waits for the other hosts' calls. Arguments and results are those of the host's devices.
func (p *hostProgram) Execute(args [][]*pjrt.Buffer, o pjrt.ExecuteOptions) ([][]*pjrt.Buffer, []*pjrt.Event, error) {
	h := p.hosts
	h.mu.Lock()
	if h.lost != nil {
		defer h.mu.Unlock()
		return nil, nil, h.lost
	}
	number := h.called[p.host]
	h.called[p.host]++
	c := h.calls[number]
	if c == nil {
		c = &sharedCall{programs: make([]*sharedProgram, len(h.runtimes)), args: make([][]*pjrt.Buffer, len(p.shared.order)), ended: make(chan struct{})}
		h.calls[number] = c
	}
	c.programs[p.host] = p.shared
	c.came++
	last := c.came == len(h.runtimes)
	for i, at := range p.mine {
		c.args[at] = args[i]
	}
	if last {
		delete(h.calls, number)
	}
	h.mu.Unlock()
	if last {
		c.run(o)
	}
	select {
	case <-c.ended:
	case <-h.gone:
		h.mu.Lock()
		running := c.came == len(h.runtimes)
		h.mu.Unlock()
		if !running {
			return nil, nil, h.lost
		}
		<-c.ended
	}
	if c.err != nil {
		return nil, nil, c.err
	}
	outs, done := make([][]*pjrt.Buffer, len(p.mine)), make([]*pjrt.Event, 0, len(p.mine))
	for i, at := range p.mine {
		outs[i] = c.outs[at]
		if c.done != nil {
			done = append(done, c.done[at])
		}
	}
	return outs, done, nil
}

func (c *sharedCall) run(o pjrt.ExecuteOptions) {
	defer close(c.ended)
	for _, s := range c.programs {
		if s != c.programs[0] {
			c.err = c.mixed()
			return
		}
	}
	c.outs, c.done, c.err = c.programs[0].exe.Execute(c.args, o)
}

// mixed is the error of hosts that call different programs.
func (c *sharedCall) mixed() error {
	var names []string
	for host, s := range c.programs {
		names = append(names, fmt.Sprintf("host %d %s", host, s.name))
	}
	return fmt.Errorf("the hosts call different programs (%s): they do not run the same thing", strings.Join(names, ", "))
}
