package gce

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/api/cloudresourcemanager/v1"
)

// ProjectNumber asks the Resource Manager for the number of the project whose id the configuration has. It needs
// resourcemanager.projects.get.
func ProjectNumber(ctx context.Context, cfg ComputeConfig) (string, error) {
	s, err := NewSurvey(SurveyConfig{Project: cfg.Project, Endpoint: cfg.Endpoint, Client: cfg.Client, Wait: cfg.Wait})
	if err != nil {
		return "", err
	}
	var p *cloudresourcemanager.Project
	err = retry(ctx, s.wait, "the Resource Manager", "project "+cfg.Project, func(ctx context.Context) (err error) {
		p, err = s.project.Projects.Get(cfg.Project).Context(ctx).Do()
		return judgeCompute(err)
	})
	switch {
	case err != nil:
		return "", err
	case p.ProjectNumber <= 0 || p.ProjectId != cfg.Project:
		return "", fmt.Errorf("ask for the number of project %s: found project %q with number %d", cfg.Project,
			p.ProjectId, p.ProjectNumber)
	}
	return strconv.FormatInt(p.ProjectNumber, 10), nil
}
