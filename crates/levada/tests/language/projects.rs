// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of project folders: which sources a network uses, and which network a name refers to.

use crate::common::{Place, network};

fn project(place: &Place, folder: &str, needs: &[&str]) {
    let needs: String = needs
        .iter()
        .map(|n| format!("<classpathentry kind=\"src\" path=\"/{n}\"/>"))
        .collect();
    place.write(
        &format!("{folder}/.classpath"),
        &format!("<classpath>{needs}<classpathentry kind=\"src\" path=\"src\"/></classpath>"),
    );
    place.write(
        &format!("{folder}/.project"),
        &format!("<projectDescription><name>{folder}</name></projectDescription>"),
    );
}

/// Says which project it is from.
fn speaker(place: &Place, folder: &str) {
    place.write(
        &format!("{folder}/src/p/Speaker.cal"),
        &format!(
            "package p;\nimport p.Words.*;\nactor Speaker () ==> :\n  bool told := false;\n  \
             action ==> guard not told do told := true; println(\"{folder} \" + WORD); end\nend\n"
        ),
    );
}

fn words(place: &Place, folder: &str) {
    place.write(
        &format!("{folder}/src/p/Words.cal"),
        &format!("package p;\nunit Words : String WORD = \"of {folder}\"; end\n"),
    );
}

fn checkout() -> Place {
    let place = Place::new(&[]);
    project(&place, "App", &["Near", "Far"]);
    project(&place, "Near", &[]);
    project(&place, "Far", &[]);
    project(&place, "Other", &["Far"]);
    let top = network(&[("speaker", "p.Speaker", &[])], &[]);
    place.write("App/src/p/Top.xdf", &top);
    place.write("Other/src/p/Top.xdf", &top);
    place.write("Other/src/p/Alone.xdf", &top);
    // Both have the class, and only the second has the unit.
    speaker(&place, "Near");
    speaker(&place, "Far");
    words(&place, "Far");
    place
}

#[test]
fn classes_are_found_in_the_order_of_the_projects() {
    let place = checkout();
    for args in [
        vec!["run", "App/src/p/Top.xdf"],
        vec!["run", "p.Top", "--project", "App"],
        vec!["run", "App/src/p/Top.xdf", "--project", "App"],
    ] {
        let run = place.run(&args);
        assert_eq!(run.succeeds().out, "Near of Far\n", "{args:?}");
    }
    // Its own sources come first, wherever they are listed; others need others.
    words(&place, "App");
    let run = place.run(&["run", "p.Top", "--project", "App"]);
    assert_eq!(run.succeeds().out, "Near of App\n");
    let run = place.run(&["run", "p.Alone", "--project", "."]);
    assert_eq!(run.succeeds().out, "Far of Far\n");
    let mut command = place.command(&["run", "p.Top"]);
    let inside = command
        .current_dir(place.path("Other/src"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&inside.stdout), "Far of Far\n");
    // By itself, Near lacks the unit.
    let check = place.run(&["check", "App", "Far", "Other"]);
    check.succeeds();
    place
        .run(&["check", "."])
        .refuses(1, &["Near/src/p/Speaker.cal", "p.Words"]);
}

#[test]
fn what_no_project_or_more_than_one_has_is_refused() {
    let place = checkout();
    let run = |args: &[&str]| place.run(args);
    run(&["run", "p.Top", "--project", "."])
        .refuses(1, &["p.Top is in 2 projects", "App", "Other"]);
    run(&["run", "p.None", "--project", "."]).refuses(1, &["no project in . has a network p.None"]);
    run(&["run", "p.None", "--project", "App"]).refuses(1, &["p.None", "App/src"]);
    run(&["run", "p.Top", "--project", "App/src"]).refuses(1, &["is no project folder", "--path"]);
    run(&["run", "p.Top", "--project", "gone"]).refuses(1, &["there is no such folder"]);
    place.write("Other/.classpath", "<classpath");
    run(&["run", "Other/src/p/Top.xdf"]).refuses(1, &[".classpath", "no project file"]);
}

#[test]
fn a_project_that_is_missing_is_told() {
    let place = checkout();
    project(&place, "App", &["Near", "Gone"]);
    for args in [
        vec!["check", "App"],
        vec!["run", "p.Top", "--project", "App"],
    ] {
        place
            .run(&args)
            .refuses(1, &["warning[project]", "needs the project Gone", "Words"]);
    }
}

/// Applications made for Orcc read outside of lists where they do not use what they get.
#[test]
fn in_a_project_the_nearest_element_is_read_outside_of_a_list() {
    let place = Place::new(&[]);
    let actor = |statement: &str| {
        format!(
            "package p;\nactor Careless () ==> :\n  int l[2][3] := [[1, 2, 3], [4, 5, 6]];\n  \
             int i := -1;\n  int sum := 0;\n  \
             run: action ==> guard i < 5 do {statement} sum := sum * 10 + l[1][i]; i := i + 1; end\n  \
             tell: action ==> guard i = 5 do println(sum); i := 6; end\nend\n"
        )
    };
    let top = network(&[("careless", "p.Careless", &[])], &[]);
    place.write("src/p/Top.xdf", &top);
    place.write("src/p/Careless.cal", &actor(""));
    let fault = ["error[fault]: index -1 of a list of 3", "Careless.cal"];
    place.run(&["run", "src/p/Top.xdf"]).refuses(1, &fault);
    let nearest = ["run", "src/p/Top.xdf", "--out-of-bounds", "clamp"];
    assert_eq!(place.run(&nearest).succeeds().out, "445666\n");
    project(&place, ".", &[]);
    for fuse in ["--fuse", "--no-fuse"] {
        let run = place.run(&["run", "src/p/Top.xdf", fuse]);
        assert_eq!(run.succeeds().out, "445666\n");
        assert!(run.err.contains("Careless.cal:6: the nearest"), "{run:?}");
        assert_eq!(run.err.matches("the nearest").count(), 1, "{run:?}");
    }
    let strict = ["run", "src/p/Top.xdf", "--out-of-bounds", "fault"];
    place.run(&strict).refuses(1, &fault);
    // What is written there is lost, and written nowhere else.
    place.write(
        "src/p/Careless.cal",
        &actor("l[1][i] := 7 + i; l[i][0] := 3; l[2][i] := 5;"),
    );
    place.run(&strict).refuses(1, &fault);
    for more in ["--fuse", "--no-fuse"] {
        let run = place.run(&["run", "src/p/Top.xdf", more]);
        assert_eq!(run.succeeds().out, "478999\n");
        assert_eq!(run.err.matches("is lost").count(), 1, "{run:?}");
    }
}
