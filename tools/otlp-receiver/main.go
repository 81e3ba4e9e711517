// Command otlp-receiver receives traces over OTLP/HTTP with the receiver of the OpenTelemetry Collector, and prints each span as one line
// of JSON.
//
//	otlp-receiver ADDRESS
//
// The first line of its output is "listening". It ends when its input ends.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	metering "go.opentelemetry.io/otel/metric/noop"
	tracing "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
)

type span struct {
	Resource   map[string]any `json:"resource"`
	Scope      string         `json:"scope"`
	TraceID    string         `json:"traceId"`
	SpanID     string         `json:"spanId"`
	ParentID   string         `json:"parentId"`
	Name       string         `json:"name"`
	Kind       string         `json:"kind"`
	Start      uint64         `json:"start"`
	End        uint64         `json:"end"`
	Status     string         `json:"status"`
	Message    string         `json:"message"`
	Attributes map[string]any `json:"attributes"`
}

func show(_ context.Context, traces ptrace.Traces) error {
	out := json.NewEncoder(os.Stdout)
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, received := range scope.Spans().All() {
				line := span{
					Resource:   resource.Resource().Attributes().AsRaw(),
					Scope:      scope.Scope().Name(),
					TraceID:    received.TraceID().String(),
					SpanID:     received.SpanID().String(),
					ParentID:   received.ParentSpanID().String(),
					Name:       received.Name(),
					Kind:       received.Kind().String(),
					Start:      uint64(received.StartTimestamp()),
					End:        uint64(received.EndTimestamp()),
					Status:     received.Status().Code().String(),
					Message:    received.Status().Message(),
					Attributes: received.Attributes().AsRaw(),
				}
				if err := out.Encode(line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// host has no extensions.
type host struct{}

func (host) GetExtensions() map[component.ID]component.Component { return nil }

func run(address string) error {
	ctx := context.Background()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = address
	sink, err := consumer.NewTraces(show)
	if err != nil {
		return err
	}
	settings := receiver.Settings{
		ID: component.NewID(factory.Type()),
		TelemetrySettings: component.TelemetrySettings{
			Logger:         zap.NewNop(),
			TracerProvider: tracing.NewTracerProvider(),
			MeterProvider:  metering.NewMeterProvider(),
			Resource:       pcommon.NewResource(),
		},
	}
	otlp, err := factory.CreateTraces(ctx, settings, config, sink)
	if err != nil {
		return err
	}
	if err := otlp.Start(ctx, host{}); err != nil {
		return err
	}
	fmt.Println("listening")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return otlp.Shutdown(ctx)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: otlp-receiver ADDRESS")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "otlp-receiver:", err)
		os.Exit(1)
	}
}
