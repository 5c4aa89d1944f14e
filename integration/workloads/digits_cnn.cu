// Trains a small convolutional network on handwritten digits and prints the losses, the accuracy on held-out images and
// a checksum over all weights. Runs repeat bit by bit.
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "digits_data.h"
#include "digits_net.cuh"

namespace {

struct Options {
  int epochs = 8;
  int batch = 288;
  int width = 8;
  std::uint64_t seed = 1;
  bool quiet = false;
  std::string data;
};

constexpr const char* kUsage =
    "usage: digits_cnn [--epochs N] [--batch N] [--width N] [--seed N] [--data FILE] [--quiet]\n"
    "  --epochs N   passes over the 1,440 training images (8)\n"
    "  --batch N    images per step (288)\n"
    "  --width N    channels of the narrow layers; the wide ones have six times as many (8)\n"
    "  --seed N     of the initial weights and the order of the images (1)\n"
    "  --data FILE  the digits (data/digits.csv beside the program)\n"
    "  --quiet      only accuracy and checksum\n";

[[noreturn]] void usage_error(const std::string& message) {
  std::fprintf(stderr, "digits_cnn: %s\n%s", message.c_str(), kUsage);
  std::exit(2);
}

std::uint64_t parse_number(const char* option, const char* text, std::uint64_t least, std::uint64_t most) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value =
      std::isdigit(static_cast<unsigned char>(*text)) != 0 ? std::strtoull(text, &end, 10) : 0;
  if (end == nullptr || *end != '\0' || errno != 0 || value < least || value > most) {
    usage_error(std::string(option) + " expects a number from " + std::to_string(least) + " to " +
                std::to_string(most) + ", not '" + text + "'");
  }
  return value;
}

std::string data_beside_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  const std::string program(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::size_t slash = program.rfind('/');
  return (slash == std::string::npos ? std::string(".") : program.substr(0, slash)) + "/data/digits.csv";
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help" || option == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (option == "--quiet") {
      options.quiet = true;
      continue;
    }
    if (option != "--epochs" && option != "--batch" && option != "--width" && option != "--seed" &&
        option != "--data") {
      usage_error("unknown option '" + option + "'");
    }
    if (i + 1 == argc) usage_error(option + " expects a value");
    const char* value = argv[++i];
    // Upper bounds keep element counts within int, which the kernels count in.
    if (option == "--epochs") options.epochs = static_cast<int>(parse_number("--epochs", value, 1, 1000000));
    if (option == "--batch") options.batch = static_cast<int>(parse_number("--batch", value, 1, 1024));
    if (option == "--width") options.width = static_cast<int>(parse_number("--width", value, 1, 256));
    if (option == "--seed") options.seed = parse_number("--seed", value, 0, ULLONG_MAX);
    if (option == "--data") options.data = value;
  }
  if (options.data.empty()) options.data = data_beside_program();
  return options;
}

// A batch on its way to the device: page-locked memory, a copy on a stream of its own, and device memory that is there
// for one step.
class Upload {
 public:
  explicit Upload(int batch) : host_(static_cast<std::size_t>(batch) * (kPixels + 1)) {
    CHECK_CUDA(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming));
  }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;
  ~Upload() { CHECK_CUDA(cudaEventDestroy(copied_)); }

  void start(cudaStream_t stream, const Digits& digits, const int* images, int count) {
    // The previous copy from this memory must be through before it is overwritten.
    CHECK_CUDA(cudaEventSynchronize(copied_));
    count_ = count;
    for (int i = 0; i < count; ++i) {
      std::memcpy(host_.get() + static_cast<std::size_t>(i) * kPixels,
                  digits.pixels.data() + static_cast<std::size_t>(images[i]) * kPixels, kPixels);
      host_[static_cast<std::size_t>(count) * kPixels + i] = digits.labels[images[i]];
    }
    device_ = DeviceArray<unsigned char>(static_cast<std::size_t>(count) * (kPixels + 1));
    CHECK_CUDA(cudaMemcpyAsync(device_.get(), host_.get(), device_.bytes(), cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaEventRecord(copied_, stream));
  }
  // Makes the stream wait for the batch.
  void await(cudaStream_t stream) { CHECK_CUDA(cudaStreamWaitEvent(stream, copied_, 0)); }
  void release() { device_.reset(); }

  const unsigned char* pixels() const { return device_.get(); }
  const unsigned char* labels() const { return device_.get() + static_cast<std::size_t>(count_) * kPixels; }
  int count() const { return count_; }

 private:
  PinnedArray<unsigned char> host_;
  DeviceArray<unsigned char> device_;
  cudaEvent_t copied_ = nullptr;
  int count_ = 0;
};

struct Totals {
  double loss = 0.0;
  int correct = 0;
  int images = 0;
};

class Trainer {
 public:
  Trainer(const Options& options, const Digits& digits)
      : options_(options),
        digits_(digits),
        random_(options.seed),
        network_(options.width, random_),
        uploads_{Upload(options.batch), Upload(options.batch)},
        results_(2 * static_cast<std::size_t>(options.batch)) {
    CHECK_CUDA(cudaStreamCreate(&compute_));
    CHECK_CUDA(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking));
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer() {
    CHECK_CUDA(cudaStreamDestroy(copies_));
    CHECK_CUDA(cudaStreamDestroy(compute_));
  }

  Totals train_epoch(int epoch) {
    std::vector<int> order = digits_.train;
    random_.shuffle(order);
    const int steps = up(static_cast<int>(order.size()), options_.batch);
    return each_batch(order, [&](Upload& batch, int step) {
      // The rate falls linearly to zero over the whole run.
      const double progress =
          (static_cast<double>(epoch) * steps + step) / (static_cast<double>(options_.epochs) * steps);
      const Rates rates{static_cast<float>(kRate * (1.0 - progress)), 0.9f, 5e-4f};
      return network_.train(compute_, batch.pixels(), batch.labels(), batch.count(), rates);
    });
  }

  Totals evaluate() {
    return each_batch(digits_.test, [&](Upload& batch, int) {
      return network_.evaluate(compute_, batch.pixels(), batch.labels(), batch.count());
    });
  }

  // FNV-1a over the bytes of all weights and running estimates.
  std::uint64_t checksum() {
    std::uint64_t hash = 0xcbf29ce484222325u;
    network_.visit([&](const Parameter& parameter) {
      std::vector<float> values(parameter.count());
      CHECK_CUDA(cudaMemcpy(values.data(), parameter.get(), values.size() * sizeof(float), cudaMemcpyDeviceToHost));
      const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
      for (std::size_t i = 0; i < values.size() * sizeof(float); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    });
    return hash;
  }

 private:
  static constexpr double kRate = 0.4;

  template <typename Step>
  Totals each_batch(const std::vector<int>& order, Step step) {
    Totals totals;
    const int count = static_cast<int>(order.size());
    const int batches = up(count, options_.batch);
    const auto start = [&](int batch) {
      const int first = batch * options_.batch;
      const int images = count - first < options_.batch ? count - first : options_.batch;
      uploads_[batch % 2].start(copies_, digits_, order.data() + first, images);
    };
    start(0);
    for (int i = 0; i < batches; ++i) {
      Upload& batch = uploads_[i % 2];
      if (i + 1 < batches) start(i + 1);
      batch.await(compute_);
      const Network::Outcome outcome = step(batch, i);
      collect(outcome, batch.count(), totals);
      batch.release();
    }
    return totals;
  }

  void collect(const Network::Outcome& outcome, int images, Totals& totals) {
    float* loss = results_.get();
    float* correct = results_.get() + images;
    CHECK_CUDA(cudaMemcpyAsync(loss, outcome.loss.get(), outcome.loss.bytes(), cudaMemcpyDeviceToHost, compute_));
    CHECK_CUDA(
        cudaMemcpyAsync(correct, outcome.correct.get(), outcome.correct.bytes(), cudaMemcpyDeviceToHost, compute_));
    CHECK_CUDA(cudaStreamSynchronize(compute_));
    for (int i = 0; i < images; ++i) {
      totals.loss += loss[i];
      totals.correct += correct[i] != 0.0f ? 1 : 0;
    }
    totals.images += images;
  }

  const Options& options_;
  const Digits& digits_;
  Random random_;
  Network network_;
  std::array<Upload, 2> uploads_;
  PinnedArray<float> results_;
  cudaStream_t compute_ = nullptr;
  cudaStream_t copies_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const Digits digits = read_digits(options.data);
  Trainer trainer(options, digits);
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const Totals totals = trainer.train_epoch(epoch);
    if (!options.quiet) {
      std::printf("epoch %d: loss %.6f, training accuracy %.2f %%\n", epoch + 1, totals.loss / totals.images,
                  100.0 * totals.correct / totals.images);
      std::fflush(stdout);
    }
  }
  const Totals test = trainer.evaluate();
  std::printf("test accuracy %.2f %% (%d of %d)\n", 100.0 * test.correct / test.images, test.correct, test.images);
  std::printf("checksum %016llx\n", static_cast<unsigned long long>(trainer.checksum()));
  return 0;
}
