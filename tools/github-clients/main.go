// Lets GitHub's own client of scale sets listen for jobs and run them, and prints each step.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/actions/scaleset"
	"github.com/actions/scaleset/listener"
)

func main() {
	ctx := context.Background()
	address := os.Getenv("GITHUB_ADDRESS")
	authorities := x509.NewCertPool()
	pem, err := os.ReadFile(os.Getenv("GITHUB_CA"))
	check("read the authority", err)
	authorities.AppendCertsFromPEM(pem)
	client := connect(address+"/"+os.Getenv("GITHUB_OWNER"), scaleset.WithRootCAs(authorities))

	group, err := client.GetRunnerGroupByName(ctx, "Default")
	check("group", err)
	none, err := client.GetRunnerScaleSet(ctx, group.ID, "from-go")
	check("find nothing", err)
	set, err := client.CreateRunnerScaleSet(ctx, &scaleset.RunnerScaleSet{Name: "from-go", RunnerGroupID: group.ID})
	check("create", err)
	found, err := client.GetRunnerScaleSet(ctx, group.ID, "from-go")
	check("find", err)
	fmt.Printf("group %s, before %v, created %v with label %s\n", group.Name, none != nil, found.ID == set.ID, set.Labels[0].Name)
	set, err = client.UpdateRunnerScaleSet(ctx, set.ID, &scaleset.RunnerScaleSet{Name: "from-go", RunnerGroupID: group.ID, RunnerSetting: scaleset.RunnerSetting{DisableUpdate: true}})
	check("update", err)
	fmt.Printf("updated %v\n", set.RunnerSetting.DisableUpdate)

	session, err := client.MessageSessionClient(ctx, set.ID, "go")
	check("session", err)
	_, err = client.MessageSessionClient(ctx, set.ID, "another")
	fmt.Printf("second session: %v\n", strings.Contains(fmt.Sprint(err), "already has an active session"))

	listening, stop := context.WithCancel(ctx)
	jobs, err := strconv.Atoi(os.Getenv("GITHUB_JOBS"))
	check("number of jobs", err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}
	scaler := &scaler{client: client, set: set.ID, address: address, machines: &http.Client{Transport: transport}, left: jobs, stop: stop}
	listen, err := listener.New(session, listener.Config{ScaleSetID: set.ID, MaxRunners: 2})
	check("listener", err)
	err = listen.Run(listening, scaler)
	if !errors.Is(err, context.Canceled) {
		check("listen", err)
	}
	fmt.Printf("started %d, completed %d, results %s, runners %d\n", scaler.started, scaler.completed, scaler.results, scaler.made)

	idle, err := client.GenerateJitRunnerConfig(ctx, &scaleset.RunnerScaleSetJitRunnerSetting{Name: "idle"}, set.ID)
	check("idle runner", err)
	_, err = client.GenerateJitRunnerConfig(ctx, &scaleset.RunnerScaleSetJitRunnerSetting{Name: "idle"}, set.ID)
	fmt.Printf("exists: %v\n", errors.Is(err, scaleset.RunnerExistsError))
	byName, err := client.GetRunnerByName(ctx, "idle")
	check("runner by name", err)
	fmt.Printf("found: %v\n", byName.ID == idle.Runner.ID && byName.RunnerScaleSetID == set.ID)
	check("remove", client.RemoveRunner(ctx, int64(idle.Runner.ID)))
	_, err = client.GetRunner(ctx, idle.Runner.ID)
	fmt.Printf("gone: %v\n", errors.Is(err, scaleset.RunnerNotFoundError))
	check("close", session.Close(ctx))
	check("delete", client.DeleteRunnerScaleSet(ctx, set.ID))
	fmt.Println("done")
}

func connect(owner string, options ...scaleset.HTTPOption) *scaleset.Client {
	if token := os.Getenv("GITHUB_TOKEN"); token != "" {
		client, err := scaleset.NewClientWithPersonalAccessToken(scaleset.NewClientWithPersonalAccessTokenConfig{GitHubConfigURL: owner, PersonalAccessToken: token}, options...)
		check("client", err)
		return client
	}
	key, err := os.ReadFile(os.Getenv("GITHUB_KEY"))
	check("read the key", err)
	installation, err := strconv.ParseInt(os.Getenv("GITHUB_INSTALLATION"), 10, 64)
	check("installation", err)
	app := scaleset.GitHubAppAuth{ClientID: os.Getenv("GITHUB_CLIENT_ID"), InstallationID: installation, PrivateKey: string(key)}
	client, err := scaleset.NewClientWithGitHubApp(scaleset.ClientWithGitHubAppConfig{GitHubConfigURL: owner, GitHubAppAuth: app}, options...)
	check("client", err)
	return client
}

// scaler starts a machine for each job that is assigned.
type scaler struct {
	client                   *scaleset.Client
	set                      int
	address                  string
	machines                 *http.Client
	mu                       sync.Mutex
	made, started, completed int
	left                     int
	results                  string
	stop                     func()
}

func (s *scaler) HandleDesiredRunnerCount(ctx context.Context, count int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.made-s.completed < count {
		s.made++
		name := fmt.Sprintf("machine-%d", s.made)
		jit, err := s.client.GenerateJitRunnerConfig(ctx, &scaleset.RunnerScaleSetJitRunnerSetting{Name: name, WorkFolder: "_work"}, s.set)
		if err != nil {
			return 0, err
		}
		body, err := json.Marshal(map[string]string{"jit": jit.EncodedJITConfig})
		if err != nil {
			return 0, err
		}
		response, err := s.machines.Post(s.address+"/_stand-in/runners", "application/json", bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusCreated {
			return 0, fmt.Errorf("machine: %s %w", response.Status, err)
		}
	}
	return count, nil
}

func (s *scaler) HandleJobStarted(ctx context.Context, job *scaleset.JobStarted) error {
	s.started++
	if s.started == 1 {
		err := s.client.RemoveRunner(ctx, int64(job.RunnerID))
		fmt.Printf("busy: %v\n", errors.Is(err, scaleset.JobStillRunningError))
		fmt.Printf("job %s of %s/%s, %v, on %v\n", job.JobDisplayName, job.OwnerName, job.RepositoryName, job.RequestLabels, strings.HasPrefix(job.RunnerName, "machine-"))
	}
	return nil
}

func (s *scaler) HandleJobCompleted(_ context.Context, job *scaleset.JobCompleted) error {
	s.mu.Lock()
	s.completed++
	s.results = job.Result
	s.mu.Unlock()
	if s.left--; s.left == 0 {
		s.stop()
	}
	return nil
}

func check(what string, err error) {
	if err != nil {
		fmt.Println("FAILED", what+":", err)
		os.Exit(1)
	}
}
