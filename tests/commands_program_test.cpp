// The program itself: exit codes, messages, and that bad input leaves nothing behind. Each case runs the built binary.
#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "commands_support.h"
#include "ops/device.h"
#include "temporary.h"

namespace quell {
namespace {

using testing::Outcome;
using testing::slurp;

// A folder with a small text as tokens and a run file; commands run inside it.
class Home {
 public:
  Home() {
    std::ofstream text(folder_ / "text.txt");
    for (int i = 0; i < 300; ++i) text << "line " << i * i % 97 << " of the tiny text,\n";
    text.close();
    write("run.yaml", "name: tiny\nsteps: 3\nthreads: 1\nmodel: {context: 16, width: 32, layers: 1, heads: 2}\n"
                      "data: {train: text/train, batch: 4}\nevaluate: {sets: [{name: valid, data: text/valid}], batches: 2}\n");
    REQUIRE(run("data prepare --tokenizer char text.txt --out text").code == 0);
    write("other.txt", cat("no line is like another here: 0123456789 ", std::string(400, 'x'), "\n"));
    REQUIRE(run("data prepare --tokenizer char other.txt --out other").code == 0);
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::string read(const std::string& name) const { return slurp(folder_ / name); }
  std::string path(const std::string& name) const { return folder_ / name; }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  Outcome run(const std::string& arguments, const std::string& before = "") const {
    return testing::run_program(folder_.path(), arguments, before);
  }

 private:
  testing::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("train ends with exit code 0, a complete folder and plain lines without a terminal", "[unit]") {
  const Home home;
  const Outcome outcome = home.run("train run.yaml report.every=1");
  CHECK(outcome.code == 0);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Catch::Contains("step 3/3  loss ") && Catch::Contains("attention   flash in 1 layer\n"));
  CHECK(outcome.err.find('\r') == std::string::npos);
  CHECK(outcome.err.find('\033') == std::string::npos);
  for (const char* file : {"config.yaml", "data.json", "vocabulary.json", "metrics.jsonl", "log.txt", "weights.safetensors"}) {
    INFO(file);
    CHECK(home.has(std::string("runs/tiny/") + file));
  }
  const Outcome text = home.run("generate runs/tiny --prompt \"line 1\" --tokens 5 --seed 3");
  CHECK(text.code == 0);
  CHECK(text.out.size() == 6 + 5 + 1);
  CHECK(text.err.empty());
  CHECK(home.run("config check runs/tiny/config.yaml").code == 0);
}

TEST_CASE("--quiet prints nothing when all is well, --dry-run writes nothing", "[unit]") {
  const Home home;
  CHECK(home.run("train run.yaml --quiet").err.empty());
  const Outcome dry = home.run("train run.yaml --dry-run --run dry");
  CHECK(dry.code == 0);
  CHECK_THAT(dry.err, Catch::Contains("one step") && Catch::Contains("optimizer moments"));
  CHECK_FALSE(home.has("dry"));
}

TEST_CASE("mistakes have their exit code, a message, and leave nothing half-written", "[unit]") {
  const Home home;
  struct Case {
    std::string arguments;
    int code;
    std::string message;
  };
  const std::vector<Case> cases{
      {"", 2, "A subcommand is required"},
      {"trian run.yaml", 2, "trian: no such command; did you mean \"train\"?"},
      {"checkpoint list runs/a", 2, "checkpoint list: no such command; the commands are ls, verify, inspect, diff, prune"},
      {"checkpoint verfy runs/a", 2, "checkpoint verfy: no such command; did you mean \"checkpoint verify\"?"},
      {"train nowhere.yaml", 2, "nowhere.yaml"},
      {"train run.yaml model.layrs=2", 2, "did you mean"},
      {"train run.yaml optimizer.lr=fast --set steps=-1", 2, "steps"},
      {"train run.yaml data.train=nowhere", 3, "nowhere"},
      {"train run.yaml data.train=run.yaml", 3, "run.yaml: is not token data"},
      {"train run.yaml data.train=text.txt data.type=uint32", 3, "text.txt"},
      {"train run.yaml model.vocabulary=4", 3, "id"},
      {"train run.yaml model.context=100000", 3, "too few for one window"},
      {"train run.yaml device=cuda:999", 7, "device: cuda:999 is not there: "},
      {"train run.yaml model.init.from=nowhere.safetensors", 4, "nowhere.safetensors"},
      {"train run.yaml optimizer.freeze=[blocks.7.*]", 2, "blocks.7.*"},
      {"train run.yaml optimizer.lr=1e25 optimizer.weight_decay=0 optimizer.schedule.kind=constant", 5, "the weights after 1 updates are in runs/tiny/weights"},
      {"train run.yaml optimizer.lr=1e30 optimizer.weight_decay=1e20 optimizer.schedule.kind=constant --run bad", 5,
       "not finite, so no weights were saved"},
      {"train run.yaml optimizer.eps=1e-300", 2, "at least 1e-30"},
      {"train run.yaml loss.z=1e300", 2, "at most 1e+09"},
      {"train run.yaml model.layers=9223372036854775807", 2, "at most 10000"},
      {"train run.yaml data.batch=9223372036854775807", 2, "at most 1e+09"},
      {"train run.yaml kernels=fused model.attention.softcap=30", 2, "no fused kernel has what layer 0's attention wants: soft-cap"},
      {"train run.yaml kernels=fused model.attention.dropout=0.1", 2, "no fused kernel has what layer 0's attention wants: dropout of attention weights"},
      {"train run.yaml evaluate.sets.0.data=other/valid model.vocabulary=100", 3, "other/valid: its vocabulary is not that of text/train"},
      {"plan run.yaml", 2, "model.vocabulary: left to the data"},
      {"plan run.yaml model.vocabulary=40 --memory 24Gigs", 2, "--memory: \"24Gigs\" is not a size of memory"},
      {"generate nowhere", 2, "nowhere: no such folder"},
      {"generate text", 4, "config.yaml: not there"},
      {"generate runs/none --temperature -1", 2, "temperature"},
      {"config explain model.attention.qk_nrom", 2, "qk_norm"},
      {"data prepare nowhere.txt --out made", 3, "nowhere.txt"},
      {"data prepare text.txt --out text", 2, "text: exists"},
      {"data prepare text.txt --out made --valid 1", 2, "--valid: 1 is not in [0, 1)"}};
  for (const Case& c : cases) {
    INFO(c.arguments);
    const Outcome outcome = home.run(c.arguments + (c.code == 5 ? "" : c.arguments.starts_with("train") ? " --run made" : ""));
    INFO(outcome.err);
    CHECK(outcome.code == c.code);
    CHECK_THAT(outcome.err, Catch::Contains(c.message));
    CHECK(outcome.out.empty());
    CHECK_FALSE(home.has("made"));
  }
  // What was learned before the numbers went wrong is kept.
  CHECK(home.has("runs/tiny/weights.safetensors"));
}

TEST_CASE("plan prints text or one JSON object, and exits with 1 where memory is not enough", "[unit]") {
  const Home home;
  const std::string plan = "plan run.yaml model.vocabulary=40 --speed 1G ";
  const Outcome fits = home.run(plan);
  CHECK(fits.code == 0);
  CHECK(fits.err.empty());
  CHECK_THAT(fits.out, Catch::StartsWith("parameters ") && Catch::Contains("passes over") && Catch::Contains("to spare\n"));
  const Outcome json = home.run(plan + "data.train=nowhere --json");
  CHECK(json.code == 0);
  CHECK_THAT(json.out, Catch::StartsWith("{") && Catch::Contains("\"passes\": null") && Catch::Contains("\"fits\": true"));
  const Outcome large = home.run(plan + "data.batch=65536 --memory 800MB");
  CHECK(large.code == 1);
  CHECK_THAT(large.out, Catch::Contains("fit in 800MB (762.9 MiB), by ") && Catch::Contains("micro_batches=") && Catch::Contains("(now 65536)"));
}

TEST_CASE("a result that cannot be written is an error", "[unit]") {
  const Home home;
  for (const char* output : {">/dev/full", ">&-"}) {
    for (const char* command : {"config show run.yaml", "config reference", "config explain model.width", "--version"}) {
      INFO(command << output);
      const std::string line = cat("cd ", home.path("."), " && ", QUELL_PROGRAM, " ", command, " ", output, " 2>err.txt");
      const int status = std::system(cat("sh -c '", line, "'").c_str());
      CHECK(WEXITSTATUS(status) == 7);
      CHECK_THAT(testing::slurp(home.path("err.txt")), Catch::Contains("standard output: what this command printed cannot be written"));
    }
  }
}

TEST_CASE("a file-size limit is an error with a message, and says what became of the weights", "[unit]") {
  const Home home;
  const Outcome outcome = home.run("train run.yaml steps=2000 report.every=1 -q", "ulimit -f 8;");
  CHECK(outcome.code == 7);
  CHECK_THAT(outcome.err, Catch::Contains("metrics.jsonl: cannot be written") && Catch::Contains("updates"));
}

TEST_CASE("an alarm says how bad it is", "[unit]") {
  const Home home;
  const std::string run = "train run.yaml steps=1 model.attention.scale.kind=constant model.attention.scale.value=";
  const Outcome warned = home.run(run + "2e2 --run warm"), critical = home.run(run + "1e6 --run hot");
  CHECK_THAT(warned.err, Catch::Contains("warning: layer 0: largest attention logit") && !Catch::Contains("critical"));
  CHECK_THAT(critical.err, Catch::Contains("warning: critical: layer 0: largest attention logit"));
}

TEST_CASE("a run that cannot learn any more says so once", "[unit]") {
  const Home home;
  const Outcome outcome = home.run("train run.yaml steps=6 report.every=1 optimizer.lr=1e10 optimizer.schedule.kind=constant");
  const std::string warning = "the gradient is exactly 0, so nothing is learned";
  CHECK_THAT(outcome.err, Catch::Contains(warning));
  CHECK(outcome.err.find(warning) == outcome.err.rfind(warning));
}

TEST_CASE("a sample is shown without evaluation sets too", "[unit]") {
  const Home home;
  CHECK(home.run("train run.yaml evaluate.sets=[] evaluate.sample=5").code == 0);
  CHECK_THAT(home.read("runs/tiny/metrics.jsonl"), Catch::Contains("\"sample\":"));
}

TEST_CASE("a folder that exists is not written into", "[unit]") {
  const Home home;
  REQUIRE(home.run("train run.yaml").code == 0);
  const std::string before = home.read("runs/tiny/metrics.jsonl");
  const Outcome again = home.run("train run.yaml");
  CHECK(again.code == 2);
  CHECK_THAT(again.err, Catch::Contains("runs/tiny: exists already"));
  CHECK(home.read("runs/tiny/metrics.jsonl") == before);
}

TEST_CASE("SIGINT ends a run after its step with everything saved; kill -9 leaves whole lines of metrics", "[unit]") {
  const Home home;
  home.write("kill.sh",
             "\"$1\" train run.yaml steps=1000000 report.every=1 --run \"$3\" 2>/dev/null & pid=$!\n"
             "while [ ! -s \"$3/metrics.jsonl\" ] || [ \"$(wc -l <\"$3/metrics.jsonl\")\" -lt 20 ]; do :; done\n"
             "kill -\"$2\" $pid; wait $pid\n");
  const auto killed = [&](const char* signal, const char* folder) {
    const std::string command = cat("cd $(dirname ", home.path("kill.sh"), ") && sh kill.sh ", QUELL_PROGRAM, " ", signal, " ", folder);
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  CHECK(killed("INT", "interrupted") == 75);
  CHECK(home.has("interrupted/weights.safetensors"));
  CHECK(killed("KILL", "killed") == 128 + SIGKILL);
  CHECK_FALSE(home.has("killed/weights.safetensors"));
  const std::string rows = home.read("killed/metrics.jsonl");
  CHECK(rows.back() == '\n');
  std::istringstream lines(rows);
  for (std::string line; std::getline(lines, line);) CHECK((line.front() == '{' && line.back() == '}'));
}

TEST_CASE("too little memory names the largest class and what helps, with exit code 7", "[unit]") {
  const Home home;
  const Outcome outcome = home.run("train run.yaml model.width=4096 model.layers=8 --run made", "ulimit -v 3000000;");
  INFO(outcome.err);
  CHECK(outcome.code == 7);
  CHECK_THAT(outcome.err, Catch::Contains("by formula the largest part is") && Catch::Contains("what helps"));
  CHECK_FALSE(home.has("made"));
}

TEST_CASE("a full disk ends the run with exit code 7 and its file's name", "[unit]") {
  const Home home;
  // The largest file may have 1,024 blocks of 512 bytes: the weights do not fit, the rest does.
  const Outcome outcome = home.run("train run.yaml model.width=256 model.layers=2 --run made", "trap \"\" XFSZ; ulimit -f 1024;");
  INFO(outcome.err);
  CHECK(outcome.code == 7);
  CHECK_THAT(outcome.err, Catch::Contains("weights.safetensors"));
  CHECK_FALSE(home.has("made/weights.safetensors"));
}

TEST_CASE("generate refuses prompts it cannot read, with the place, and takes any length", "[unit]") {
  const Home home;
  REQUIRE(home.run("train run.yaml steps=1").code == 0);
  struct Case {
    const char* arguments;
    const char* message;
  };
  for (const Case& c : {Case{"--prompt \"line \xC3\xA9 1\"", "--prompt: byte 5: the character \"\xC3\xA9\" (U+00E9) is not among the "},
                        Case{"--prompt \"line \xFF\"", "--prompt: byte 5 (0xFF) is not UTF-8"},
                        Case{"--prompt \"\"", "--prompt: empty; give at least one character"},
                        Case{"--prompt=", "--prompt"},
                        Case{"--tokens -1", "--tokens"},
                        Case{"--tokens 3.5", "--tokens"},
                        Case{"--tokens 99999999999999999999", "--tokens"},
                        Case{"--temperature nan", "--temperature: nan is not a number"},
                        Case{"--top-p nan", "--top-p: nan is not in [0, 1]"}}) {
    INFO(c.arguments);
    const Outcome outcome = home.run(cat("generate runs/tiny ", c.arguments));
    INFO(outcome.err);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Catch::Contains(c.message));
    CHECK(outcome.out.empty());
  }
  // The context is 16 tokens; every character is one.
  const std::string prompt = "line 1 of the tiny text, line 2";
  const Outcome none = home.run("generate runs/tiny --tokens 0 --prompt \"" + prompt + "\"");
  CHECK(none.code == 0);
  CHECK(none.out == prompt + "\n");
  for (const char* length : {"15", "16", "17", "50"}) {
    INFO(length);
    const Outcome outcome = home.run(cat("generate runs/tiny --tokens ", length, " --prompt \"", prompt, "\""));
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out.starts_with(prompt));
    CHECK(outcome.out.size() == prompt.size() + std::stoul(length) + 1);
  }
  // Of a prompt that is longer than the context only its end counts.
  const auto greedy = [&](const std::string& text) {
    return home.run(cat("generate runs/tiny --tokens 20 --temperature 0 --prompt \"", text, "\"")).out.substr(text.size());
  };
  CHECK(greedy(prompt) == greedy(prompt.substr(prompt.size() - 16)));
}

TEST_CASE("--version names LibTorch, the build and the devices", "[unit]") {
  const Home home;
  const Outcome outcome = home.run("--version");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::StartsWith("quell ") && Catch::Contains("libtorch 2."));
  CHECK_THAT(outcome.out, Catch::EndsWith("devices cpu; " + ops::cuda_description(ops::visible_cuda_devices()) + "\n"));
}

TEST_CASE("a CUDA device is refused with what is missing: the build, the device, or the training on it", "[unit]") {
  const Home home;
  const ops::CudaDevices visible = ops::visible_cuda_devices();
  const Outcome outcome = home.run("train run.yaml device=cuda:0 --run made");
  INFO(outcome.err);
  CHECK(outcome.code == (visible.devices.empty() ? 7 : 2));
  CHECK_THAT(outcome.err, Catch::Contains(!visible.built              ? "device: cuda:0 is not there: this build has no CUDA; set"
                                          : visible.devices.empty() ? "device: cuda:0 is not there: no CUDA device is visible ("
                                                                    : "is there, but training on it is not finished"));
  CHECK_FALSE(home.has("made"));
}

TEST_CASE("config show says where each value comes from, explain knows every key, reference lists them", "[unit]") {
  const Home home;
  const Outcome shown = home.run("config show run.yaml optimizer.lr=0.5 --set model.attention.preset=olmo2 --origin");
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, Catch::Contains("run.yaml:2:8") && Catch::Contains("optimizer.lr=0.5") && Catch::Contains("projection"));
  CHECK_THAT(home.run("config explain model.attention.qk_norm.kind").out, Catch::Contains("rmsnorm"));
  CHECK_THAT(home.run("config reference").out, Catch::Contains("zero_centered"));
}

TEST_CASE("docs/config.md is what config reference prints", "[unit]") {
  const Home home;
  CHECK(home.run("config reference").out == slurp(std::string(QUELL_SOURCE) + "/docs/config.md"));
}

}  // namespace quell
